package otlp

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
)

// Kind is a kind of records, in the form that environment variables use.
type Kind string

// The kinds.
const (
	Traces  Kind = "TRACES"
	Metrics Kind = "METRICS"
	Logs    Kind = "LOGS"
)

// Exporter is the way in which records are exported.
type Exporter int

// The exporters.
const (
	None Exporter = iota
	Console
	HTTP
	GRPC
)

// Settings contains the settings in the environment. The zero value exports nothing.
type Settings struct {
	Traces, Metrics, Logs Signal
	Service               string      // OTEL_SERVICE_NAME
	Resource              [][2]string // OTEL_RESOURCE_ATTRIBUTES
	Parent                telemetry.Parent
}

// A Signal configures the export of one kind of records.
type Signal struct {
	Exporter Exporter
	URL      string // complete URL for HTTP; host:port for gRPC
	Plain    bool   // TLS is not used
	Trusting bool   // the certificate of the receiver is not verified
	Gzip     bool
	Timeout  time.Duration
	Headers  [][2]string
	// CA is the file with the certificates of the receiver. Certificate and Key are the files of
	// the client certificate. "" means none.
	CA, Certificate, Key string
}

// On reports whether anything is exported.
func (s *Settings) On() bool {
	return s.Traces.Exporter != None || s.Metrics.Exporter != None || s.Logs.Exporter != None
}

// defaultTimeout is the default of OTEL_EXPORTER_OTLP_TIMEOUT.
const defaultTimeout = 10 * time.Second

// Read reads Terragrunt's variables TG_TELEMETRY_… and OpenTelemetry's variables about the
// receiver. Without the former, OTEL_TRACES_EXPORTER=otlp enables traces, as in OpenTofu. logs enables the export of logs, which is an experiment. odd contains messages about
// unknown exporters. Values that Terragrunt rejects are errors.
func Read(env sys.Env, logs bool) (s Settings, odd []string, err error) {
	for _, x := range []struct {
		kind Kind
		tg   string
		into *Signal
		may  string
	}{
		{Traces, "TRACE", &s.Traces, "none, console, otlpHttp, otlpGrpc and http"},
		{Metrics, "METRIC", &s.Metrics, "none, console, otlpHttp, grpcHttp and otlpGrpc"},
		{Logs, "LOGS", &s.Logs, "none, console, otlpHttp and otlpGrpc"},
	} {
		value, name := named(env, "TELEMETRY_"+x.tg+"_EXPORTER")
		if x.kind == Logs && !logs {
			continue
		}
		if value == "" && x.kind == Traces && env.Get(TracesExporter) == "otlp" {
			if *x.into, err = standard(env); err != nil {
				return Settings{}, nil, err
			}
			continue
		}
		var known bool
		if *x.into, known, err = signal(env, x.kind, name, value); err != nil {
			return Settings{}, nil, err
		}
		if !known {
			odd = append(odd, fmt.Sprintf("%s: there is no exporter %q, so nothing is sent; there are %s", name, value, x.may))
		}
	}
	if !s.On() {
		return Settings{}, odd, nil
	}
	s.Service = env.Get("OTEL_SERVICE_NAME")
	if s.Resource, err = pairs(env, "OTEL_RESOURCE_ATTRIBUTES"); err != nil {
		return Settings{}, nil, err
	}
	if text := env.Get(telemetry.Variable); text != "" && s.Traces.Exporter != None {
		if s.Parent, err = telemetry.ParseParent(text); err != nil {
			return Settings{}, nil, fmt.Errorf("the environment variable %s has the value %q: %w", telemetry.Variable, text, err)
		}
	}
	return s, odd, nil
}

// TracesExporter is the variable of OpenTelemetry that enables traces, as in OpenTofu. Its only
// value with an effect is otlp.
const TracesExporter = "OTEL_TRACES_EXPORTER"

// standard returns the settings of traces according to OpenTelemetry's variables alone.
func standard(env sys.Env) (s Signal, err error) {
	switch protocol, name := either(env, Traces, "PROTOCOL"); protocol {
	case "", "http/protobuf":
		s.Exporter = HTTP
	case "grpc":
		s.Exporter = GRPC
	default:
		return s, fmt.Errorf("the environment variable %s has the value %q: it must be http/protobuf or grpc", name, protocol)
	}
	insecure, name := either(env, Traces, "INSECURE")
	plain := false
	if insecure != "" {
		if plain, err = strconv.ParseBool(insecure); err != nil {
			return s, fmt.Errorf("the environment variable %s has the value %q: it must be true or false", name, insecure)
		}
	}
	if err = s.otel(env, Traces); err == nil {
		err = s.aim(env, Traces, "", "", plain)
		s.Trusting = false // the variable disables TLS, not the verification of certificates
	}
	return s, err
}

// signal returns the settings of one kind of records. known is false if the exporter is unknown.
func signal(env sys.Env, kind Kind, name, value string) (s Signal, known bool, err error) {
	base := name[strings.Index(name, "TELEMETRY"):]
	insecure, err := yes(env, base+"_INSECURE_ENDPOINT")
	if err != nil {
		return s, false, err
	}
	where := ""
	switch {
	case value == "" || value == "none":
		return s, true, nil
	case value == "console":
		return Signal{Exporter: Console}, true, nil
	case value == "otlpHttp":
		s.Exporter = HTTP
	case value == "otlpGrpc", value == "grpcHttp" && kind == Metrics:
		s.Exporter = GRPC
	case value == "http" && kind == Traces:
		s.Exporter = HTTP
		of := name
		if where, name = named(env, base+"_HTTP_ENDPOINT"); where == "" {
			return s, false, fmt.Errorf("the environment variable %s must be set: it is where the exporter %q of %s sends to", name, value, of)
		}
		if !strings.Contains(where, "://") {
			where = scheme(insecure) + where
		}
		if u, err := url.Parse(where); err == nil && strings.Trim(u.Path, "/") == "" {
			where = strings.TrimRight(where, "/") + "/v1/traces"
		}
	default:
		return s, false, nil
	}
	if err = s.otel(env, kind); err == nil {
		err = s.aim(env, kind, name, where, insecure)
	}
	return s, true, err
}

func scheme(plain bool) string {
	if plain {
		return "http://"
	}
	return "https://"
}

// aim sets the receiver: where, otherwise the one in OpenTelemetry's variables, otherwise this
// machine.
func (s *Signal) aim(env sys.Env, kind Kind, name, where string, insecure bool) error {
	if where == "" {
		where, name = either(env, kind, "ENDPOINT")
		common := where != "" && name == "OTEL_EXPORTER_OTLP_ENDPOINT"
		switch {
		case where == "" && s.Exporter == GRPC:
			where = scheme(insecure) + "localhost:4317"
		case where == "":
			where = scheme(insecure) + "localhost:4318/v1/" + kind.name()
		case !strings.Contains(where, "://"):
			where = scheme(insecure) + where
		}
		if common && s.Exporter == HTTP {
			where = strings.TrimRight(where, "/") + "/v1/" + kind.name()
		}
	}
	u, err := url.Parse(where)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the environment variable %s names no receiver: it must be an address such as http://localhost:4318", name)
	}
	s.URL, s.Plain, s.Trusting = where, u.Scheme == "http", insecure && u.Scheme == "https"
	if s.Exporter == GRPC {
		if s.URL = u.Host; u.Port() == "" {
			s.URL += ":" + map[bool]string{true: "80", false: "443"}[s.Plain]
		}
	}
	return nil
}

// otel reads OpenTelemetry's variables about requests.
func (s *Signal) otel(env sys.Env, kind Kind) error {
	s.Timeout = defaultTimeout
	if v, name := either(env, kind, "TIMEOUT"); v != "" {
		ms, err := strconv.Atoi(v)
		if err != nil || ms <= 0 {
			return fmt.Errorf("the environment variable %s has the value %q: it must be a number of milliseconds from 1 on", name, v)
		}
		s.Timeout = time.Duration(min(ms, int(time.Hour/time.Millisecond))) * time.Millisecond
	}
	switch v, name := either(env, kind, "COMPRESSION"); v {
	case "", "none":
	case "gzip":
		s.Gzip = true
	default:
		return fmt.Errorf("the environment variable %s has the value %q: it must be gzip or none", name, v)
	}
	_, name := either(env, kind, "HEADERS")
	var err error
	s.Headers, err = pairs(env, name)
	s.CA, _ = either(env, kind, "CERTIFICATE")
	s.Certificate, _ = either(env, kind, "CLIENT_CERTIFICATE")
	s.Key, _ = either(env, kind, "CLIENT_KEY")
	return err
}

// either returns the variable of OpenTelemetry for the kind or, without it, the one for all
// kinds.
func either(env sys.Env, kind Kind, what string) (value, name string) {
	name = "OTEL_EXPORTER_OTLP_" + string(kind) + "_" + what
	if v := env.Get(name); v != "" {
		return v, name
	}
	name = "OTEL_EXPORTER_OTLP_" + what
	return env.Get(name), name
}

// named returns a variable of Terragrunt, TG_NAME or the old TERRAGRUNT_NAME. If neither is set,
// name is the former.
func named(env sys.Env, what string) (value, name string) {
	if old := "TERRAGRUNT_" + what; env.Get("TG_"+what) == "" && env.Get(old) != "" {
		return env.Get(old), old
	}
	return env.Get("TG_" + what), "TG_" + what
}

// yes parses a boolean variable of Terragrunt.
func yes(env sys.Env, what string) (bool, error) {
	v, name := named(env, what)
	if v == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(v)
	if err != nil {
		return false, fmt.Errorf("the environment variable %s has the value %q: it must be true or false", name, v)
	}
	return on, nil
}

// pairs parses a list of percent-encoded key=value pairs, as in W3C Baggage.
func pairs(env sys.Env, name string) ([][2]string, error) {
	var out [][2]string
	for p := range strings.SplitSeq(env.Get(name), ",") {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		k, v, ok := strings.Cut(p, "=")
		k, err := url.PathUnescape(strings.TrimSpace(k))
		if err == nil {
			v, err = url.PathUnescape(strings.TrimSpace(v))
		}
		if !ok || k == "" || err != nil { // values may be secret, so the message omits the text
			return nil, fmt.Errorf("the environment variable %s cannot be read: it must be KEY=VALUE, with commas between", name)
		}
		out = append(out, [2]string{k, v})
	}
	return out, nil
}
