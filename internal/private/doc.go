// Package private keeps things of this computer to one user: directories that nobody
// else may enter, and listeners that only that user's programs reach. A listener is a
// unix socket; on Windows it is a named pipe, for there a socket's file does not say
// who may connect. Who may connect is the system's to decide, and asked of it again on
// both sides where it tells. What is said over a connection is nobody's business here.
package private
