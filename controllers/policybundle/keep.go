package policybundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// Keeper keeps the last good files of each bundle in a ControllerRevision, so
// that a manager that starts while the newest are broken still knows them: else
// a change freeze would end with a restart. It goes with its bundle.
type Keeper struct {
	Client    client.Client
	Reader    client.Reader // past the cache, which need not run yet
	Namespace string        // of the manager
}

// bundleLabel names the bundle a ControllerRevision keeps the files of.
const bundleLabel = "policy.kruise.io/bundle"

// label is a bundle's name, or a part of it and its hash: names of bundles are
// longer than values of labels may be.
func label(name string) string {
	if len(name) <= 40 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:31] + "-" + hex.EncodeToString(sum[:4])
}

// Keep keeps files as the last good ones, in place of those before; nil drops
// those. The name of what is kept tells apart bundles that were deleted and
// made anew, and files that differ in tests only.
func (k Keeper) Keep(ctx context.Context, b *policy.ClusterPolicyBundle, files map[string]string) error {
	name := ""
	if files != nil {
		raw, err := json.Marshal(map[string]any{"files": files})
		if err != nil {
			return fmt.Errorf("encoding files of bundle %s: %w", b.Name, err)
		}
		sum := sha256.Sum256(append([]byte(b.UID), raw...))
		name = "bundle-" + label(b.Name) + "-" + hex.EncodeToString(sum[:6])
		rev := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: k.Namespace, Labels: map[string]string{bundleLabel: label(b.Name)},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(b, policy.GroupVersion.WithKind("ClusterPolicyBundle"))},
			},
			Data: runtime.RawExtension{Raw: raw}, Revision: b.Generation,
		}
		if err := k.Client.Create(ctx, rev); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("keeping files of bundle %s: %w", b.Name, err)
		}
	}
	kept, err := k.list(ctx, b)
	if err != nil {
		return err
	}
	for i := range kept {
		if kept[i].Name == name {
			continue
		}
		if err := client.IgnoreNotFound(k.Client.Delete(ctx, &kept[i])); err != nil {
			return fmt.Errorf("dropping old files of bundle %s: %w", b.Name, err)
		}
	}
	return nil
}

// LastGood reads the files that were kept, nil if there are none.
func (k Keeper) LastGood(ctx context.Context, b *policy.ClusterPolicyBundle) (map[string]string, error) {
	kept, err := k.list(ctx, b)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	last := &kept[0]
	for i := range kept {
		if kept[i].Revision > last.Revision {
			last = &kept[i]
		}
	}
	doc := struct {
		Files map[string]string `json:"files"`
	}{}
	if err := json.Unmarshal(last.Data.Raw, &doc); err != nil {
		return nil, fmt.Errorf("reading the kept files of bundle %s from %s: %w", b.Name, last.Name, err)
	}
	return doc.Files, nil
}

func (k Keeper) list(ctx context.Context, b *policy.ClusterPolicyBundle) ([]appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := k.Reader.List(ctx, list, client.InNamespace(k.Namespace), client.MatchingLabels{bundleLabel: label(b.Name)}); err != nil {
		return nil, fmt.Errorf("listing the kept files of bundle %s: %w", b.Name, err)
	}
	var out []appsv1.ControllerRevision
	for i := range list.Items { // the label is anybody's; the owner is not
		if metav1.IsControlledBy(&list.Items[i], b) {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}

func files(b *policy.ClusterPolicyBundle) map[string]string {
	out := make(map[string]string, len(b.Spec.Files))
	for path, text := range b.Spec.Files {
		out[path] = string(text)
	}
	return out
}
