// Command server is a gRPC service to publish: grpc-go's own health service over
// HTTP/2 without TLS. It sends the visitor's address back as metadata.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:50051", "where to listen")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	states := health.NewServer()
	server := grpc.NewServer(grpc.UnaryInterceptor(tellVisitor), grpc.StreamInterceptor(changing(states)))
	grpc_health_v1.RegisterHealthServer(server, states)
	log.Fatal(server.Serve(listener))
}

// tellVisitor sends back who Porchlight says is calling.
func tellVisitor(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	got, _ := metadata.FromIncomingContext(ctx)
	if err := grpc.SetHeader(ctx, metadata.MD{"email": got.Get("x-service-email")}); err != nil {
		return nil, err
	}
	return handle(ctx, req)
}

// changing gives who watches a state something to see: it is another one soon
// after, and the first one again when they are gone.
func changing(states *health.Server) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		change := time.AfterFunc(200*time.Millisecond, func() {
			states.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		})
		defer states.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
		defer change.Stop()
		return handle(srv, stream)
	}
}
