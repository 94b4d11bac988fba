package v1alpha1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// fills is how many objects each direction of a round trip tries.
const fills = 300

// newFiller fills objects with anything that JSON can carry, and with what conversions treat specially more often than
// chance would.
func newFiller(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 2).Funcs(
		func(*metav1.TypeMeta, randfill.Continue) {}, // not of the object, but of the wire
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(int64(c.Uint32()), 0) },
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(time.Unix(int64(c.Uint32()), 0))
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(int64(c.Uint32()), resource.DecimalSI)
		},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.Raw = []byte(`{"f:spec":{}}`) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a":"b"}`) },
		func(v *intstr.IntOrString, c randfill.Continue) {
			some := []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("0%"), intstr.FromString("25%")}
			if pick := c.Intn(len(some) + 1); pick < len(some) {
				*v = some[pick]
				return
			}
			v.RandFill(c)
		},
		// Conversions hand pods on as a whole; filling all of them takes most of the time.
		func(p *corev1.PodSpec, c randfill.Continue) {
			*p = corev1.PodSpec{NodeName: c.String(0), Containers: []corev1.Container{{Name: c.String(0), Image: c.String(0)}}}
		},
		func(v *v1beta1.RollingUpdateType, c randfill.Continue) {
			some := []v1beta1.RollingUpdateType{"", SurgingRollingUpdateType, v1beta1.StandardRollingUpdateType, "anything"}
			*v = some[c.Intn(len(some))]
		},
	)
}

// A convertible is a pointer to a v1alpha1 object; a hub is one to the v1beta1 object.
type (
	convertible[O any] interface {
		*O
		runtime.Object
		conversion.Convertible
	}
	aHub[H any] interface {
		*H
		conversion.Hub
	}
)

func toNew[H any, PH aHub[H]](t *testing.T, old conversion.Convertible) PH {
	t.Helper()
	hub := PH(new(H))
	if err := old.ConvertTo(hub); err != nil {
		t.Fatalf("converting to the hub: %v", err)
	}
	return hub
}

func toOld[O any, PO convertible[O]](t *testing.T, hub conversion.Hub) PO {
	t.Helper()
	old := PO(new(O))
	if err := old.ConvertFrom(hub); err != nil {
		t.Fatalf("converting from the hub: %v", err)
	}
	return old
}

func sameObject(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// checkRoundTrips tries that whatever stands in an object of either version comes back from the other. decorate adds to
// an old object the marks that chance would not.
func checkRoundTrips[O, H any, PO convertible[O], PH aHub[H]](t *testing.T, decorate func(PO, int)) {
	t.Helper()
	filler := newFiller(20261121)
	for i := range fills {
		hub := PH(new(H))
		filler.Fill(hub)
		before := hub.DeepCopyObject()
		old := toOld[O, PO](t, hub)
		sameObject(t, "the hub as a source", before, hub)
		sameObject(t, "the hub that came back", before, toNew[H, PH](t, old))
		sameObject(t, "the old version with what was kept", old, toOld[O, PO](t, toNew[H, PH](t, old)))

		old = PO(new(O))
		filler.Fill(old)
		decorate(old, i)
		earlier := old.DeepCopyObject()
		hub = toNew[H, PH](t, old)
		sameObject(t, "the old version as a source", earlier, old)
		sameObject(t, "the old version that came back", earlier, toOld[O, PO](t, hub))
		sameObject(t, "the hub with what was kept", hub, toNew[H, PH](t, toOld[O, PO](t, hub)))
	}
}

// checkOtherHubs tries that an object of another kind is refused.
func checkOtherHubs(t *testing.T, old conversion.Convertible) {
	t.Helper()
	if err := old.ConvertTo(otherHub{}); err == nil {
		t.Error("converting to another hub succeeded")
	}
	if err := old.ConvertFrom(otherHub{}); err == nil {
		t.Error("converting from another hub succeeded")
	}
}

func annotated(pairs ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{}
	for i := 0; i < len(pairs); i += 2 {
		metav1.SetMetaDataAnnotation(&meta, pairs[i], pairs[i+1])
	}
	return meta
}
