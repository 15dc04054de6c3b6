// Runs every scenario through aztables and prints one line for each. A scenario is a function; its name in
// scenarios.txt stands beside it in the list of its group.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

const scenarioTimeMax = 2 * time.Minute

type scenario struct {
	name string
	run  func(*bench)
}

func main() {
	passed, failed := 0, 0
	for _, group := range [][]scenario{tables, entities, queries, transactions, access, service} {
		for _, s := range group {
			if reason := try(s); reason == "" {
				fmt.Println("ok", s.name)
				passed++
			} else {
				fmt.Printf("FAIL %s: %s\n", s.name, reason)
				failed++
			}
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// try runs one scenario and returns why it failed, or nothing. Checks fail by panicking.
func try(s scenario) (reason string) {
	ctx, cancel := context.WithTimeout(context.Background(), scenarioTimeMax)
	defer cancel()
	b := newBench(ctx)
	defer b.clear()
	defer func() {
		if failure := recover(); failure != nil {
			reason = strings.Join(strings.Fields(fmt.Sprint(failure)), " ")
			reason = strings.ToValidUTF8(reason[:min(len(reason), 300)], "")
		}
	}()
	s.run(b)
	return ""
}
