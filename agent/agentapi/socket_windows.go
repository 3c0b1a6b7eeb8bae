package agentapi

// checkSocket has nothing to look at: whose pipe it is, is asked of the system once it is
// connected.
func checkSocket(string) error { return nil }
