package tunnel

const AbortedMost = abortedMost
