package journal

// mapFile does nothing: answers go to the journal at once.
func mapFile(string, int) (memory []byte, unmap func()) { return nil, nil }
