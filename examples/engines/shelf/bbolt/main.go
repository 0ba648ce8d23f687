// The writer and the checker, by the name that the program is called by.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

const accounts = 100

var notes, balances = []byte("notes"), []byte("balances")

// A transaction adds a note under its client and number, and one to the balance of an account that follows from both.
func keyOf(client int, number uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, uint32(client)), number)
}

func sumOf(key []byte) uint64 {
	sum := fnv.New64a()
	sum.Write(key)
	return sum.Sum64()
}

func contentOf(key []byte) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint64(nil, sumOf(key)), 4+int(sumOf(key)%32))
}

func accountOf(key []byte) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(sumOf(key)%accounts))
}

func commit(client int, number uint64) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		key := keyOf(client, number)
		balance := uint64(0)
		if known := tx.Bucket(balances).Get(accountOf(key)); known != nil {
			balance = binary.BigEndian.Uint64(known)
		}
		if err := tx.Bucket(notes).Put(key, contentOf(key)); err != nil {
			return err
		}
		return tx.Bucket(balances).Put(accountOf(key), binary.BigEndian.AppendUint64(nil, balance+1))
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func write(file string, clients, seconds int, how, syncs string) {
	store, err := bbolt.Open(file, 0o600, nil)
	must(err)
	must(store.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(notes)
		must(err)
		_, err = tx.CreateBucket(balances)
		return err
	}))
	folder, err := os.Open(filepath.Dir(file))
	must(err)
	must(folder.Sync())
	store.NoSync = syncs == "off"
	store.MaxBatchDelay = 2 * time.Millisecond
	run := store.Update
	if how == "batch" {
		run = store.Batch
	}
	// os.Stdout has no buffer: a line is one write, as it has to be.
	fmt.Fprintln(os.Stdout, "begin")
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for number := uint64(1); time.Now().Before(until); number++ {
				must(run(commit(client, number)))
				fmt.Fprintf(os.Stdout, "ack %d %d\n", client, number)
			}
		})
	}
	all.Wait()
}

type answer struct {
	Clients map[string]uint64 `json:"clients"`
	Wrong   []string          `json:"wrong"`
	Refused []string          `json:"refused"`
}

func check(file string) answer {
	found := answer{map[string]uint64{}, []string{}, []string{}}
	store, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: time.Second})
	if err == nil {
		err = store.View(func(tx *bbolt.Tx) error {
			for damage := range tx.Check() {
				found.Refused = append(found.Refused, damage.Error())
			}
			if len(found.Refused) > 0 || tx.Bucket(notes) == nil || tx.Bucket(balances) == nil {
				return nil
			}
			return look(tx, &found)
		})
	}
	if err != nil {
		found.Refused = append(found.Refused, err.Error())
	}
	return found
}

func look(tx *bbolt.Tx, found *answer) error {
	due := map[string]uint64{}
	err := tx.Bucket(notes).ForEach(func(key, content []byte) error {
		client, number := fmt.Sprint(binary.BigEndian.Uint32(key)), binary.BigEndian.Uint64(key[4:])
		if number != found.Clients[client]+1 {
			found.Wrong = append(found.Wrong, fmt.Sprintf("client %s: %d follows %d", client, number, found.Clients[client]))
		}
		if !bytes.Equal(content, contentOf(key)) {
			found.Wrong = append(found.Wrong, fmt.Sprintf("client %s: note %d is not what was written", client, number))
		}
		found.Clients[client] = number
		due[string(accountOf(key))]++
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Bucket(balances).ForEach(func(account, balance []byte) error {
		if binary.BigEndian.Uint64(balance) != due[string(account)] {
			found.Wrong = append(found.Wrong, fmt.Sprintf("account %x is not the sum of its notes", account))
		}
		return nil
	})
}

func main() {
	log.SetFlags(0)
	clients := flag.Int("clients", 1, "")
	duration := flag.Int("duration", 1, "")
	how := flag.String("commit", "update", "")
	syncs := flag.String("sync", "on", "")
	flag.Int64("seed", 0, "")
	must(flag.CommandLine.Parse(os.Args[2:]))
	file := filepath.Join(os.Args[1], "base")
	if filepath.Base(os.Args[0]) == "checker" {
		must(json.NewEncoder(os.Stdout).Encode(check(file)))
		return
	}
	// The first line of standard error is the version.
	made, _ := debug.ReadBuildInfo()
	log.Print("bbolt ", made.Deps[0].Version)
	write(file, *clients, *duration, *how, *syncs)
}
