package sys

import (
	"os"
	"sync"

	"golang.org/x/term"
)

// readKeys sets the terminal to raw mode and returns a channel of typed keys.
func readKeys(fd int) (<-chan string, func() error, error) {
	old, err := term.MakeRaw(fd)
	if err != nil {
		return nil, nil, err
	}
	keys, end := make(chan string), make(chan struct{})
	sizes, off := resized()
	go func() { // blocks in a read of the terminal and ends with the process
		buf := make([]byte, 256)
		for {
			n, err := os.Stdin.Read(buf)
			if n > 0 {
				select {
				case keys <- string(buf[:n]):
				case <-end:
					return
				}
			}
			if err != nil {
				close(keys)
				return
			}
		}
	}()
	merged := make(chan string)
	go func() { // ends with the keys, or when the terminal is restored
		defer close(merged)
		for {
			what, ok := "", true
			select {
			case what, ok = <-keys:
			case <-sizes:
			case <-end:
				return
			}
			if !ok {
				return
			}
			select {
			case merged <- what:
			case <-end:
				return
			}
		}
	}()
	return merged, sync.OnceValue(func() error {
		close(end)
		off()
		return term.Restore(fd, old)
	}), nil
}
