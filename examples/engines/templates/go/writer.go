// The writer: go build -o writer writer.go
package main

import (
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// commit is your engine's: on the disk when it returns.
func commit(file *os.File, client int, number uint64) error {
	line := fmt.Sprintf("%9d %19d ", client, number)
	sum := fnv.New32a()
	sum.Write([]byte(line))
	if _, err := fmt.Fprintf(file, "%s%08x\n", line, sum.Sum32()); err != nil {
		return err
	}
	return syscall.Fdatasync(int(file.Fd()))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	log.SetFlags(0)
	// The first line of standard error is the version.
	log.Print("template in Go 1")
	directory := os.Args[1]
	clients := flag.Int("clients", 1, "")
	duration := flag.Int("duration", 1, "")
	flag.Int64("seed", 0, "")
	must(flag.CommandLine.Parse(os.Args[2:]))
	file, err := os.OpenFile(filepath.Join(directory, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	must(err)
	must(file.Sync())
	folder, err := os.Open(directory)
	must(err)
	must(folder.Sync())
	// os.Stdout has no buffer: a line is one write, as it has to be.
	fmt.Fprintln(os.Stdout, "begin")
	until := time.Now().Add(time.Duration(*duration) * time.Second)
	for number := uint64(1); time.Now().Before(until); number++ {
		for client := 0; client < *clients; client++ {
			must(commit(file, client, number))
			fmt.Fprintf(os.Stdout, "ack %d %d\n", client, number)
		}
	}
}
