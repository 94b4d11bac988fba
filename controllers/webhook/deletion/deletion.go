// Package deletion refuses deletes of protected objects (features 19). It is the decision point protection/deletion in Go,
// until the policies take it over.
package deletion

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// Guard refuses deletes, counts the refusals and writes each to the protection log.
type Guard struct {
	refusals *prometheus.CounterVec
	mutex    sync.Mutex
	log      *json.Encoder
}

// New makes a guard. Without a registerer nothing is counted, without a log nothing is written.
func New(registerer prometheus.Registerer, log io.Writer) (*Guard, error) {
	guard := &Guard{refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "workload_deletion_protection",
		Help: "Deletes of workloads that deletion protection refused.",
	}, []string{"kind_namespace_name", "username"})}
	if log != nil {
		guard.log = json.NewEncoder(log)
	}
	if registerer == nil {
		return guard, nil
	}
	if err := registerer.Register(guard.refusals); err != nil {
		return nil, fmt.Errorf("registering the metric of deletion protection: %w", err)
	}
	return guard, nil
}

// Refuse says why a workload must not be deleted; an empty answer allows it. Only the labels of the stored object count,
// and one that is already being deleted is no longer protected.
func (g *Guard) Refuse(kind string, object metav1.Object, replicas *int32, user string) string {
	reason := refuse(object, replicas)
	if reason == "" {
		return ""
	}
	g.refusals.WithLabelValues(fmt.Sprintf("%s_%s_%s", kind, object.GetNamespace(), object.GetName()), user).Inc()
	if g.log != nil {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		// A full disk must not decide who may delete, so what cannot be written is lost.
		_ = g.log.Encode(entry{"DeletionProtection", kind, object.GetNamespace(), object.GetName(), user})
	}
	return reason
}

// entry is a line of the protection log. UserAgent is the name of the user, as it always was.
type entry struct{ Event, Kind, Namespace, Name, UserAgent string }

func refuse(object metav1.Object, replicas *int32) string {
	if object.GetDeletionTimestamp() != nil {
		return ""
	}
	value := object.GetLabels()[policyv1alpha1.DeletionProtectionKey]
	reason := fmt.Sprintf("forbidden by ResourcesProtectionDeletion for %s=%s", policyv1alpha1.DeletionProtectionKey, value)
	switch {
	case value == policyv1alpha1.DeletionProtectionAlways:
		return reason
	case value == policyv1alpha1.DeletionProtectionCascading && replicas != nil && *replicas > 0:
		return fmt.Sprintf("%s and replicas %d>0", reason, *replicas)
	}
	return ""
}
