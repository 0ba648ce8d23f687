// The checker: go build -o checker checker.go
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
)

type answer struct {
	Clients map[string]uint64 `json:"clients"`
	Wrong   []string          `json:"wrong"`
	Refused []string          `json:"refused"`
}

func main() {
	found := answer{map[string]uint64{}, []string{}, []string{}}
	content, err := os.ReadFile(filepath.Join(os.Args[1], "log"))
	if err != nil {
		found.Refused = append(found.Refused, err.Error())
	}
	for _, line := range bytes.SplitAfter(content, []byte("\n")) {
		var client int
		var number uint64
		var written uint32
		sum := fnv.New32a()
		if len(line) > 9 {
			sum.Write(line[:len(line)-9])
		}
		// Your engine's recovery: a line that is not whole was never acknowledged, nor anything behind it.
		if count, _ := fmt.Sscanf(string(line), "%d %d %x\n", &client, &number, &written); count != 3 || written != sum.Sum32() {
			break
		}
		name := fmt.Sprint(client)
		if number != found.Clients[name]+1 {
			found.Wrong = append(found.Wrong, "a number is missing")
			break
		}
		found.Clients[name] = number
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		os.Exit(1)
	}
}
