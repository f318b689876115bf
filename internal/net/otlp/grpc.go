package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// overGRPC sends requests with OTLP/gRPC.
type overGRPC struct {
	conn   *grpc.ClientConn
	method string
	signal Signal
	header metadata.MD
}

// services contains the methods of the collector.
var services = map[Kind]string{
	Traces:  "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	Metrics: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
	Logs:    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}

func newGRPC(kind Kind, s Signal, o Options, secure *tls.Config) (sender, error) {
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(creds), grpc.WithUserAgent(o.Name + "/" + o.Version), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(asIs{}), grpc.MaxCallRecvMsgSize(mostAnswer)),
	}
	if s.Gzip {
		//lint:ignore SA1019 the new way needs a registry, which is filled at start
		dial = append(dial, grpc.WithCompressor(grpc.NewGZIPCompressor()))
	}
	conn, err := grpc.NewClient(s.URL, dial...)
	if err != nil {
		return nil, fmt.Errorf("the receiver of telemetry %s cannot be reached: %w", s.URL, err)
	}
	header := metadata.MD{}
	for _, x := range s.Headers {
		header.Append(x[0], x[1])
	}
	return &overGRPC{conn: conn, method: services[kind], signal: s, header: header}, nil
}

func (g *overGRPC) send(ctx context.Context, body []byte) (answer []byte, again bool, err error) {
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, g.header), g.signal.Timeout)
	defer cancel()
	err = g.conn.Invoke(ctx, g.method, &body, &answer)
	if err == nil {
		return answer, false, nil
	}
	st, _ := status.FromError(err)
	switch st.Code() {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.OutOfRange, codes.DataLoss:
		again = true
	case codes.DeadlineExceeded, codes.Canceled:
		return nil, true, context.DeadlineExceeded
	}
	return nil, again, fmt.Errorf("%s: %.300s", st.Code(), st.Message())
}

func (g *overGRPC) where() string { return g.signal.URL }

func (g *overGRPC) close() { _ = g.conn.Close() }

// asIs is a codec for messages that are already encoded.
type asIs struct{}

var errMessage = errors.New("this codec takes *[]byte")

// Marshal implements encoding.Codec.
func (asIs) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, errMessage
	}
	return *b, nil
}

// Unmarshal implements encoding.Codec.
func (asIs) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return errMessage
	}
	*b = append([]byte(nil), data...)
	return nil
}

// Name implements encoding.Codec. The messages are protobuf.
func (asIs) Name() string { return "proto" }
