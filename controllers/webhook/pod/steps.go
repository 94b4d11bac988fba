package pod

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

// ReadinessGate gives pods of our controllers the readiness gate KruisePodReady, or
// all pods (PA-01; gate KruisePodReadinessGate).
func ReadinessGate(all bool) Step {
	return Step{"adding the readiness gate", func(_ context.Context, _ string, pod *corev1.Pod) (bool, error) {
		if !all && !ours(pod) {
			return false, nil
		}
		return inplace.AddGate(pod, kruise.KruisePodReady), nil
	}}
}

func ours(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group == kruise.GroupName
}

// BudgetAnnotations annotates pods with their budget (PUB-01). One that cannot be
// found now is found by the controller, so that nothing here is worth refusing a
// pod for.
func BudgetAnnotations(finder *podunavailablebudget.Finder) Step {
	return Step{"finding the PodUnavailableBudget", func(ctx context.Context, namespace string, pod *corev1.Pod) (bool, error) {
		names, err := finder.Of(ctx, namespace, pod)
		if err != nil {
			ctrl.LoggerFrom(ctx).V(2).Info("A pod is made without its budget, which the controller will add", "namespace", namespace, "reason", err.Error())
			return false, nil
		}
		if len(names) == 0 {
			return false, nil
		}
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[policy.PodRelatedBudgetKey], pod.Annotations[policy.PodRelatedBudgetLegacyKey] = names[0], names[0]
		return true, nil
	}}
}
