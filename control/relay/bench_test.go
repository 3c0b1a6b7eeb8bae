package relay

const benchRole = "PORCHLIGHT_BENCH_ROLE"

func runBenchRole(string) int { return 2 }
