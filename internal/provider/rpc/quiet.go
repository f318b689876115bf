package rpc

import "strings"

// quiet returns the environment with the log levels of the plugin libraries set to off,
// unless the environment requests logs. Without a level, plugins write every step of every
// call as JSON to their standard error. That takes more time than the calls, and we would
// drop the output. A panic is written at any level.
func quiet(env []string) []string {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case !strings.HasPrefix(name, "TF_LOG"), value == "", strings.EqualFold(value, "off"):
			continue
		case name == "TF_LOG", strings.HasPrefix(name, "TF_LOG_PROVIDER"), strings.HasPrefix(name, "TF_LOG_SDK"):
			return env
		}
	}
	return append(env[:len(env):len(env)], "TF_LOG_SDK=off", "TF_LOG_PROVIDER=off")
}
