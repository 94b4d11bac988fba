// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/time/rate"
	"k8s.io/klog/v2"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/record/mask"
	"github.com/regatta-sh/regatta/engine/record/sink"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// DecisionLogs are the flags that say where decisions are recorded besides memory.
type DecisionLogs struct {
	stdout    bool
	file      string
	fileSize  int // MiB
	fileKeep  int
	url       string
	headers   map[string]string
	tokenFile string
	caFile    string
	interval  time.Duration
	masks     []string
	unmasked  bool
	points    []string
}

// AddFlags adds the flags.
func (d *DecisionLogs) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&d.stdout, "decision-log-stdout", false, "Write each decision to the standard output, a JSON object a line with the names of OPA's decision log.")
	fs.StringVar(&d.file, "decision-log-file", "", "Append each decision to this file, a JSON object a line; none if empty.")
	fs.IntVar(&d.fileSize, "decision-log-file-max-size", 100, "Size in MiB that --decision-log-file may have before another one is begun; 0 for any.")
	fs.IntVar(&d.fileKeep, "decision-log-file-keep", 5, "How many full files are kept beside --decision-log-file.")
	fs.StringVar(&d.url, "decision-log-url", "", "Post decisions to this URL as OPA does, such as https://logs.example.com/logs; none if empty.")
	fs.StringToStringVar(&d.headers, "decision-log-header", nil, "Headers to send to --decision-log-url, as name=value.")
	fs.StringVar(&d.tokenFile, "decision-log-token-file", "", "File with the bearer token for --decision-log-url, read for each request.")
	fs.StringVar(&d.caFile, "decision-log-ca-file", "", "File with the certificates, in PEM, that the certificate of --decision-log-url is checked with, read for each request; those of the machine if empty.")
	fs.DurationVar(&d.interval, "decision-log-interval", 5*time.Second, "How long decisions for --decision-log-url are gathered.")
	fs.StringArrayVar(&d.masks, "decision-log-mask", nil, "Hide what is at this path, besides secrets and values of environment variables, such as /input/**/annotations/example.com~1owner; may be repeated. * is any part of a name, ** any number of names.")
	fs.BoolVar(&d.unmasked, "decision-log-unmasked", false, "Hide nothing in decision logs, not even secrets. Answers to users who ask for decisions stay masked.")
	fs.StringSliceVar(&d.points, "decision-log-points", nil, "Decision points whose decisions are logged, such as rollout/plan,protection/budget; all if empty.")
}

// ValidateFlags returns all errors of the flags.
func (d *DecisionLogs) ValidateFlags() error {
	var wrong []error
	unless := func(ok bool, flag string, value any, want string) {
		if !ok {
			wrong = append(wrong, fmt.Errorf("--%s is %v, want %s", flag, value, want))
		}
	}
	unless(d.fileSize >= 0, "decision-log-file-max-size", d.fileSize, "0 or more")
	unless(d.fileKeep >= 0 && d.fileKeep <= 1000, "decision-log-file-keep", d.fileKeep, "0 to 1000")
	unless(d.interval > 0, "decision-log-interval", d.interval, "more than 0")
	if d.url != "" {
		_, err := sink.NewHTTP(d.url)
		unless(err == nil, "decision-log-url", strconv.Quote(d.url), "http:// or https://, a host, and no user")
	}
	unless(d.url != "" || d.tokenFile == "", "decision-log-token-file", d.tokenFile, "--decision-log-url with it")
	unless(d.url != "" || len(d.headers) == 0, "decision-log-header", d.headers, "--decision-log-url with it")
	unless(d.caFile == "" || strings.HasPrefix(strings.ToLower(d.url), "https://"), "decision-log-ca-file", d.caFile, "an https:// --decision-log-url with it")
	for _, m := range d.masks {
		if _, err := mask.New(m); err != nil {
			wrong = append(wrong, fmt.Errorf("--decision-log-mask: %w", err))
		}
	}
	for _, p := range d.points {
		_, ok := catalog.FindPoint(decision.Name(p))
		unless(ok, "decision-log-points", strconv.Quote(p), "decision points such as rollout/plan")
	}
	unless(!d.unmasked || len(d.masks) == 0, "decision-log-unmasked", d.unmasked, "no --decision-log-mask with it")
	return errors.Join(wrong...)
}

// newEncoders returns the encoders of decisions: a masking one for users who ask for decisions, and
// one with the masks of the flags for sinks.
func (d *DecisionLogs) newEncoders(replica string) (asked, logged *record.Encoder, err error) {
	hidden, err := mask.New(d.masks...)
	if err != nil {
		return nil, nil, err
	}
	origin := record.NewOrigin()
	opts := []record.EncoderOption{record.WithOrigin(origin), record.WithLabels(map[string]string{"id": origin, "replica": replica})}
	asked = record.NewEncoder(append(opts, record.WithMask(hidden))...)
	if d.unmasked {
		return asked, record.NewEncoder(opts...), nil
	}
	return asked, asked, nil
}

// sinks are where decisions are sent.
type sinks []*sink.Sink

func (d *DecisionLogs) openSinks(lines *record.Encoder, stdout io.Writer) (out sinks, err error) {
	seldom := rate.Sometimes{Interval: time.Minute}
	wrong := func(err error) {
		seldom.Do(func() {
			klog.ErrorS(err, "Decisions are not logged as they should be; this is said once a minute at most")
		})
	}
	add := func(name string, to sink.Output, opts ...sink.Option) {
		var points []decision.Name
		for _, p := range d.points {
			points = append(points, decision.Name(p))
		}
		out = append(out, sink.New(name, lines, to, append(opts, sink.WithErrors(wrong), sink.WithPoints(points...))...))
	}
	var server *sink.HTTP
	if d.url != "" {
		opts := []sink.HTTPOption{sink.WithTokenFile(d.tokenFile), sink.WithHeaders(d.headers), sink.WithRetries(wrong)}
		if d.caFile != "" {
			cas, err := sink.OpenCAs(d.caFile)
			if err != nil {
				return nil, fmt.Errorf("--decision-log-ca-file: %w", err)
			}
			opts = append(opts, sink.WithCAs(cas))
		}
		server, err = sink.NewHTTP(d.url, opts...)
		if err != nil {
			return nil, fmt.Errorf("--decision-log-url: %w", err)
		}
	}
	if d.file != "" {
		file, err := sink.OpenFile(d.file, int64(d.fileSize)<<20, d.fileKeep)
		if err != nil {
			return nil, fmt.Errorf("--decision-log-file: %w", err)
		}
		add("file", file)
	}
	if server != nil {
		add("http", server, sink.WithBatch(1<<20, d.interval))
	}
	if d.stdout {
		add("stdout", sink.NewStream(stdout))
	}
	return out, nil
}

func (s sinks) engineOptions() (out []engine.Option) {
	for _, one := range s {
		out = append(out, engine.WithSink(one))
	}
	return out
}

// farewell is how long Close waits for decisions to be logged.
const farewell = 5 * time.Second

// closeAll sends the remaining decisions to all sinks at once.
func (s sinks) closeAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	errs := make(chan error, len(s))
	for _, one := range s {
		recovery.Go("policyhost", func() { errs <- one.Close(ctx) }, func(err error) { errs <- err })
	}
	var all []error
	for range s {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}
