package journal

// mapFile does nothing, so that answers go to the journal directly.
func mapFile(string, int) (memory []byte, unmap func()) { return nil, nil }
