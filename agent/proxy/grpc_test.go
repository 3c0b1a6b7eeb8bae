package proxy_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/test/programs"
)

// talk answers each message with who sent it, and ends with a status of its own.
func talk(_ any, stream grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	for n := 0; ; n++ {
		var in wrapperspb.StringValue
		if err := stream.RecvMsg(&in); errors.Is(err, io.EOF) {
			stream.SetTrailer(metadata.Pairs("x-count", fmt.Sprint(n)))
			return status.Error(codes.OutOfRange, "that was all")
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(wrapperspb.String(md.Get("x-service-email")[0] + " said " + in.Value)); err != nil {
			return err
		}
	}
}

// gRPC talks both ways at once: each message arrives as it is sent, whatever its size,
// and the status comes in trailers.
func TestGRPCTalks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	desc := grpc.StreamDesc{StreamName: "Talk", Handler: talk, ServerStreams: true, ClientStreams: true}
	app := grpc.NewServer()
	app.RegisterService(&grpc.ServiceDesc{ServiceName: "porch.Test", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{desc}}, struct{}{})
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- app.Serve(ln) }()
	t.Cleanup(func() { app.Stop(); <-served })
	r.publish("notes", ln.Addr().(*net.TCPAddr).Port)
	r.change("notes", func(a *engine.App) { a.Options.Upstream = agentapi.UpstreamH2C })
	b := r.signedIn("notes", bobID, true)

	conn := programs.Got(grpc.NewClient("passthrough:///"+r.addr, grpc.WithAuthority(sni),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: r.roots, ServerName: sni}))))(t)
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "cookie", cookie+"="+b.cookies[cookie])
	for range 3 {
		stream, err := conn.NewStream(ctx, &desc, "/porch.Test/Talk")
		programs.Must(t, err)
		for _, size := range []int{0, 1, 5000, 70_000, 1 << 20} {
			said := strings.Repeat("x", size)
			programs.Must(t, stream.SendMsg(wrapperspb.String(said)))
			var out wrapperspb.StringValue
			if err := stream.RecvMsg(&out); err != nil || out.Value != "bob@example.com said "+said {
				t.Fatalf("%d bytes: %d, %v", size, len(out.Value), err)
			}
		}
		programs.Must(t, stream.CloseSend())
		err = stream.RecvMsg(new(wrapperspb.StringValue))
		if status.Code(err) != codes.OutOfRange || fmt.Sprint(stream.Trailer().Get("x-count")) != "[5]" {
			t.Errorf("%v, %v", err, stream.Trailer())
		}
	}
}
