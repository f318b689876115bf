package command

import (
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/internal/sys"
)

// WithEnvironment adds the words of TF_CLI_ARGS and TF_CLI_ARGS_command in front of
// those of the command line, the more special ones first, as the peers do: a flag
// that is repeated has the last value. Of run, TF_CLI_ARGS is for the command that it runs.
func WithEnvironment(env sys.Env, command string, args []string) ([]string, error) {
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
	return append(front, args...), nil
}

// ArgsVariable is the variable that has words for one command.
func ArgsVariable(command string) string {
	return "TF_CLI_ARGS_" + strings.NewReplacer(" ", "_", "-", "_").Replace(command)
}
