// Loaded before a driver or an example (node --import): finds *.localhost on
// this computer, as browsers do and Node does not everywhere. Addresses on the
// internet need nothing of the kind.
import dns from 'node:dns'

const lookup = dns.lookup
dns.lookup = (hostname, ...rest) => lookup(hostname.endsWith('.localhost') ? '127.0.0.1' : hostname, ...rest)
