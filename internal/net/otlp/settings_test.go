package otlp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/sys"
)

// env returns an environment of words.
func env(words string) sys.Env { return strings.Fields(words) }

const (
	trace  = "TG_TELEMETRY_TRACE_EXPORTER"
	metric = "TG_TELEMETRY_METRIC_EXPORTER"
	logs   = "TG_TELEMETRY_LOGS_EXPORTER"
)

func TestRead(t *testing.T) {
	http := func(url string) Signal {
		return Signal{Exporter: HTTP, URL: url, Plain: strings.HasPrefix(url, "http:"), Timeout: defaultTimeout}
	}
	grpc := func(target string, plain bool) Signal {
		return Signal{Exporter: GRPC, URL: target, Plain: plain, Timeout: defaultTimeout}
	}
	for _, tt := range []struct {
		env  string
		want Settings
	}{
		{"", Settings{}},
		{trace + "=none", Settings{}},
		{trace + "=console", Settings{Traces: Signal{Exporter: Console}}},
		{trace + "=otlpHttp", Settings{Traces: http("https://localhost:4318/v1/traces")}},
		{trace + "=otlpHttp " + trace + "_INSECURE_ENDPOINT=true", Settings{Traces: http("http://localhost:4318/v1/traces")}},
		{trace + "=otlpHttp OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1/base/", Settings{Traces: http("http://h:1/base/v1/traces")}},
		{trace + "=otlpHttp OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://h:1/base", Settings{Traces: http("http://h:1/base")}},
		{trace + "=http " + trace + "_HTTP_ENDPOINT=h:1", Settings{Traces: http("https://h:1/v1/traces")}},
		{trace + "=http " + trace + "_HTTP_ENDPOINT=http://h:1/x", Settings{Traces: http("http://h:1/x")}},
		{trace + "=http " + trace + "_HTTP_ENDPOINT=h:1 " + trace + "_INSECURE_ENDPOINT=1", Settings{Traces: http("http://h:1/v1/traces")}},
		{trace + "=otlpGrpc", Settings{Traces: grpc("localhost:4317", false)}},
		{trace + "=otlpGrpc " + trace + "_INSECURE_ENDPOINT=t", Settings{Traces: grpc("localhost:4317", true)}},
		{metric + "=grpcHttp OTEL_EXPORTER_OTLP_ENDPOINT=http://h:7", Settings{Metrics: grpc("h:7", true)}},
		{metric + "=otlpGrpc OTEL_EXPORTER_OTLP_ENDPOINT=https://h", Settings{Metrics: grpc("h:443", false)}},
		{metric + "=otlpHttp " + metric + "_INSECURE_ENDPOINT=true", Settings{Metrics: http("http://localhost:4318/v1/metrics")}},
		{logs + "=otlpHttp " + logs + "_INSECURE_ENDPOINT=true", Settings{Logs: http("http://localhost:4318/v1/logs")}},
		{trace + "=console OTEL_SERVICE_NAME=s OTEL_RESOURCE_ATTRIBUTES=a=b,c=d%20e", Settings{
			Traces: Signal{Exporter: Console}, Service: "s", Resource: [][2]string{{"a", "b"}, {"c", "d e"}},
		}},
		{trace + "=otlpHttp " + trace + "_INSECURE_ENDPOINT=true OTEL_EXPORTER_OTLP_ENDPOINT=https://h OTEL_EXPORTER_OTLP_HEADERS=k=v " +
			"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=5 OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_CERTIFICATE=ca.pem", Settings{Traces: Signal{
			Exporter: HTTP, URL: "https://h/v1/traces", Trusting: true, Gzip: true, Timeout: 5 * time.Millisecond,
			Headers: [][2]string{{"k", "v"}}, CA: "ca.pem",
		}}},
		{"TERRAGRUNT_TELEMETRY_TRACE_EXPORTER=http TERRAGRUNT_TELEMETRY_TRACE_EXPORTER_HTTP_ENDPOINT=h:1 " + trace + "_INSECURE_ENDPOINT=true", Settings{Traces: http("http://h:1/v1/traces")}},
		{"TERRAGRUNT_TELEMETRY_TRACE_EXPORTER=http " + trace + "=none", Settings{}},
		{"TRACEPARENT=garbage", Settings{}}, // not used
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1", Settings{Traces: http("http://h:1/v1/traces")}},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_INSECURE=true", Settings{Traces: http("http://localhost:4318/v1/traces")}},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_INSECURE=true", Settings{Traces: grpc("localhost:4317", true)}},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_INSECURE=true OTEL_EXPORTER_OTLP_ENDPOINT=https://h", Settings{Traces: grpc("h:443", false)}},
		{"OTEL_TRACES_EXPORTER=otlp " + trace + "=none", Settings{}},
		{"OTEL_TRACES_EXPORTER=console", Settings{}},
	} {
		got, odd, err := Read(env(tt.env), true)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil || len(odd) > 0 {
			t.Errorf("%s: %v, %v\n%s", tt.env, odd, err, diff)
		}
	}
}

func TestReadMistakes(t *testing.T) {
	for _, tt := range []struct{ env, want string }{
		{trace + "=http", trace + "_HTTP_ENDPOINT must be set"},
		{trace + "=console " + trace + "_INSECURE_ENDPOINT=maybe", `_INSECURE_ENDPOINT has the value "maybe": it must be true or false`},
		{trace + "=console TRACEPARENT=x", `TRACEPARENT has the value "x": it must be`},
		{trace + "=otlpHttp OTEL_EXPORTER_OTLP_ENDPOINT=ftp://h", "OTEL_EXPORTER_OTLP_ENDPOINT names no receiver"},
		{trace + "=otlpHttp OTEL_EXPORTER_OTLP_TIMEOUT=0", "number of milliseconds"},
		{trace + "=otlpHttp OTEL_EXPORTER_OTLP_COMPRESSION=zip", "gzip or none"},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "http/protobuf or grpc"},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_INSECURE=maybe", "must be true or false"},
		{trace + "=otlpHttp OTEL_EXPORTER_OTLP_HEADERS=secret", "OTEL_EXPORTER_OTLP_HEADERS cannot be read"},
	} {
		_, _, err := Read(env(tt.env), true)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", tt.env, err)
		}
	}
	s, odd, err := Read(env(trace+"=Console "+metric+"=x"), false)
	if err != nil || s.On() || len(odd) != 2 || !strings.Contains(odd[0], `there is no exporter "Console"`) {
		t.Errorf("%v, %v, %v", s, odd, err)
	}
	if s, odd, err := Read(env(logs+"=console"), false); err != nil || s.On() || len(odd) > 0 {
		t.Errorf("without the experiment: %v, %v, %v", s, odd, err)
	}
}
