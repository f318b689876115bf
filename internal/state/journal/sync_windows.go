package journal

// syncDir has nothing to do: folders cannot be synced here.
func syncDir(string) error { return nil }
