package command

import (
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// WithEnvironment returns args with the words of TF_CLI_ARGS_command and TF_CLI_ARGS in front,
// in this order, as OpenTofu does. The last value of a repeated flag counts. For run,
// TF_CLI_ARGS belongs to the command that it runs, so it is left out.
func WithEnvironment(env sys.Env, command string, args []string) ([]string, error) {
	front, err := environment(env, command)
	if err != nil {
		return nil, err
	}
	return append(front, args...), nil
}

// OfEnvironment returns how many of the first args come from WithEnvironment. The caller may
// have removed some of these words.
func OfEnvironment(env sys.Env, command string, args []string) int {
	front, _ := environment(env, command)
	n := 0
	for _, word := range front {
		if n < len(args) && args[n] == word {
			n++
		}
	}
	return n
}

// environment returns the words that the environment adds to a command.
func environment(env sys.Env, command string) ([]string, error) {
	special := ArgsVariable(command)
	var front []string
	for _, name := range []string{special, "TF_CLI_ARGS"} {
		if command == "run" && name != special {
			continue
		}
		words, err := sys.Words(env.Get(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		front = append(front, words...)
	}
	return front, nil
}

// ArgsVariable returns the name of the variable that adds words to one command.
func ArgsVariable(command string) string {
	return "TF_CLI_ARGS_" + strings.NewReplacer(" ", "_", "-", "_").Replace(command)
}
