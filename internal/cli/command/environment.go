package command

import (
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// WithEnvironment adds the words of TF_CLI_ARGS and TF_CLI_ARGS_command in front of
// those of the command line, the more special ones first, as the peers do: a flag
// that is repeated has the last value. Of run, TF_CLI_ARGS is for the command that it runs.
func WithEnvironment(env sys.Env, command string, args []string) ([]string, error) {
	front, err := environment(env, command)
	if err != nil {
		return nil, err
	}
	return append(front, args...), nil
}

// OfEnvironment is how many of the words of a command, in front, are those that
// WithEnvironment added. Some of those may have been taken out since.
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

// environment are the words that the environment has for a command.
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

// ArgsVariable is the variable that has words for one command.
func ArgsVariable(command string) string {
	return "TF_CLI_ARGS_" + strings.NewReplacer(" ", "_", "-", "_").Replace(command)
}
