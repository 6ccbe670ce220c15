// Says of histories of a register whether they are linearizable, by Porcupine. A test of Encore compares the answers
// with its own.
//
// Standard input has a history on each line: its operations, separated by blanks, each as
// "w,VALUE,START,END" or "r,VALUE,START,END". The answer to each line is a line with true or false.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/anishathalye/porcupine"
)

type input struct {
	isWrite bool
	value   int64
}

// A register whose initial value is 0.
var register = porcupine.Model{
	Init: func() interface{} { return int64(0) },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		operation := in.(input)
		if operation.isWrite {
			return true, operation.value
		}
		return operation.value == state.(int64), state
	},
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<30)
	answers := bufio.NewWriter(os.Stdout)
	defer answers.Flush()
	for lines.Scan() {
		var history []porcupine.Operation
		for client, word := range strings.Fields(lines.Text()) {
			var kind rune
			var value, start, end int64
			if _, err := fmt.Sscanf(word, "%c,%d,%d,%d", &kind, &value, &start, &end); err != nil {
				fmt.Fprintf(os.Stderr, "%q is no operation: %v\n", word, err)
				os.Exit(1)
			}
			in := input{isWrite: kind == 'w', value: value}
			history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: start, Output: nil, Return: end})
		}
		fmt.Fprintln(answers, porcupine.CheckOperations(register, history))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
