package worker

import "os"

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// noInterrupts is for command lines that run for somebody else.
func noInterrupts() (<-chan os.Signal, func()) { return nil, func() {} }
