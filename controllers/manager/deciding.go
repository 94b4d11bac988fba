package manager

import (
	"fmt"
	"os"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/regatta-sh/regatta/engine"
	enginemetrics "github.com/regatta-sh/regatta/engine/metrics"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/policies"
)

// deciding is what decides, and who is told of it.
type deciding struct {
	engine  *engine.Engine
	shadows *record.Shadows
	// records are the latest decisions, lines how they are written where somebody
	// else may read them.
	records *record.Buffer
	lines   *record.Encoder
	logs    sinks
	replica string
}

func (o *Options) deciding(news *news) (*deciding, error) {
	d := &deciding{records: record.NewBuffer()}
	var err error
	if d.replica, err = o.webhooks.replica(); err != nil {
		return nil, err
	}
	counted := enginemetrics.New()
	if err := metrics.Registry.Register(counted); err != nil {
		return nil, fmt.Errorf("registering the metrics of decisions: %w", err)
	}
	asked, logged, err := o.decisionLogs.lines(d.replica)
	if err != nil {
		return nil, err
	}
	d.lines = asked
	if d.logs, err = o.decisionLogs.open(logged, os.Stdout); err != nil {
		return nil, err
	}
	if err := metrics.Registry.Register(enginemetrics.NewLogs(d.logs...)); err != nil {
		return nil, fmt.Errorf("registering the metrics of decision logs: %w", err)
	}
	options := append(counted.Options(), engine.WithSink(d.records), engine.WithObserver(news), engine.WithMemory(o.decisionMemory(os.DirFS("/"))),
		engine.WithSinkOf(func(e *engine.Engine) engine.Sink {
			d.shadows = record.NewShadows(e, record.WithShadowObserver(counted), record.WithSampled(d.sample))
			return d.shadows
		}))
	if d.engine, err = engine.New(policies.Builtin, append(options, d.logs.options()...)...); err != nil {
		return nil, err
	}
	return d, nil
}

// sample logs a decision of a shadow that differs from the one that was carried
// out.
func (d *deciding) sample(s record.Sampled) {
	r := s.Now
	r.Shadow = s.Name
	for _, log := range d.logs {
		log.Record(r)
	}
}

func (d *deciding) close() {
	d.shadows.Close()
	d.engine.Close()
	if err := d.logs.close(); err != nil {
		klog.ErrorS(err, "The last decisions are not logged")
	}
}
