// Command client calls the service of ../server at its address, with an app
// password, and prints what came of it as JSON. It finds the address by
// HTTPS_PROXY, if that is set, and trusts what SSL_CERT_FILE has.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

// basic sends an app password with every call.
type basic struct{ user, password string }

func (b basic) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(b.user+":"+b.password))}, nil
}

func (basic) RequireTransportSecurity() bool { return true }

func main() {
	address := flag.String("address", "", "host:port of the service")
	user := flag.String("user", "", "mail address")
	password := flag.String("password", "", "app password")
	flag.Parse()
	conn, err := grpc.NewClient(*address,
		grpc.WithTransportCredentials(credentials.NewTLS(nil)),
		grpc.WithPerRPCCredentials(basic{*user, *password}))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := use(ctx, grpc_health_v1.NewHealthClient(conn))
	if err != nil {
		log.Fatal(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
}

type result struct {
	Call   string   `json:"call"`
	Email  string   `json:"email"`
	Stream []string `json:"stream"`
}

// use makes one call, and reads a stream until it has something new to say.
func use(ctx context.Context, service grpc_health_v1.HealthClient) (result, error) {
	var head metadata.MD
	answer, err := service.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&head))
	if err != nil {
		return result{}, err
	}
	out := result{Call: answer.Status.String()}
	if email := head.Get("email"); len(email) > 0 {
		out.Email = email[0]
	}
	stream, err := service.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	for err == nil && len(out.Stream) < 2 {
		if answer, err = stream.Recv(); err == nil {
			out.Stream = append(out.Stream, answer.Status.String())
		}
	}
	return out, err
}
