// SPDX-License-Identifier: Apache-2.0

package bundlerevision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// Store keeps the archives that passed the gate, each in a ControllerRevision that is deleted with its
// bundle. So all replicas have the same bytes, and only the leader needs the source. A manager that
// starts while the newest archive is broken, or the registry cannot be reached, still has the good
// ones.
type Store struct {
	Client    client.Client
	Reader    client.Reader // not a cache: the cache has no archives
	Namespace string        // of the manager, for bundles of the platform
}

// Label is the label of the ControllerRevisions that keep archives; its value names the bundle.
const Label = "policy.kruise.io/bundle"

// labelValue is a bundle's name, or a part of it and its hash: names of bundles may be longer than
// values of labels.
func labelValue(name string) string {
	if len(name) <= 40 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:31] + "-" + hex.EncodeToString(sum[:4])
}

// NamespaceOf returns the namespace of the archives of a bundle, and of the objects that its source
// names.
func (s Store) NamespaceOf(b policy.AnyPolicyBundle) string {
	if ns := b.GetNamespace(); ns != "" {
		return ns
	}
	return s.Namespace
}

// SaveArchive stores an archive and returns the name of its ControllerRevision. The name differs for a
// bundle that was deleted and created again.
func (s Store) SaveArchive(ctx context.Context, b policy.AnyPolicyBundle, archive []byte, reference string) (string, error) {
	raw, err := json.Marshal(Content{Archive: archive, Reference: reference})
	if err != nil {
		return "", fmt.Errorf("encoding bundle %s: %w", b.GetName(), err)
	}
	sum := sha256.Sum256([]byte(string(b.GetUID()) + ArchiveDigest(archive)))
	rev := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: "bundle-" + labelValue(b.GetName()) + "-" + hex.EncodeToString(sum[:]), Namespace: s.NamespaceOf(b),
			Labels:          map[string]string{Label: labelValue(b.GetName())},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(b, policy.KindOf(b))},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: b.GetGeneration(),
	}
	err = s.Client.Create(ctx, rev.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		a := &policy.PolicyArtifact{KeptIn: rev.Name, Digest: ArchiveDigest(archive)}
		var lost LostError
		if _, err = s.LoadArchive(ctx, b, a); errors.As(err, &lost) { // another archive has the name
			err = s.replaceRevision(ctx, rev)
		}
	}
	if err != nil {
		return "", fmt.Errorf("keeping bundle %s: %w", b.GetName(), err)
	}
	return rev.Name, nil
}

func (s Store) replaceRevision(ctx context.Context, rev *appsv1.ControllerRevision) error {
	if err := s.Client.Delete(ctx, rev.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return err
	}
	return s.Client.Create(ctx, rev)
}

// LostError reports an archive that does not exist any more, or has changed.
type LostError struct {
	Revision string
	// KeptIn is the ControllerRevision that should have the archive.
	KeptIn types.NamespacedName
	Why    string
}

func (e LostError) Error() string {
	return fmt.Sprintf("reading revision %s: ControllerRevision %s %s", e.Revision, e.KeptIn, e.Why)
}

// LoadArchive reads the archive of an artifact. The error is a LostError if the archive does not have
// the digest of the artifact.
func (s Store) LoadArchive(ctx context.Context, b policy.AnyPolicyBundle, a *policy.PolicyArtifact) ([]byte, error) {
	rev := &appsv1.ControllerRevision{}
	key := types.NamespacedName{Namespace: s.NamespaceOf(b), Name: a.KeptIn}
	lost := func(why string) error { return LostError{a.Revision, key, why} }
	err := s.Reader.Get(ctx, key, rev)
	switch {
	case apierrors.IsNotFound(err):
		return nil, lost("is gone")
	case err != nil:
		return nil, fmt.Errorf("reading revision %s: %w", a.Revision, err)
	case !metav1.IsControlledBy(rev, b): // other objects may have the label; only revisions of this bundle have the owner
		return nil, lost("belongs to another")
	}
	c, err := Read(rev.Data.Raw, a.Digest)
	if err != nil {
		return nil, lost(err.Error())
	}
	return c.Archive, nil
}

// PruneArchives deletes the archives of a bundle except those with the given names.
func (s Store) PruneArchives(ctx context.Context, b policy.AnyPolicyBundle, keep ...string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevisionList"))
	if err := s.Reader.List(ctx, list, client.InNamespace(s.NamespaceOf(b)), client.MatchingLabels{Label: labelValue(b.GetName())}); err != nil {
		return fmt.Errorf("listing the revisions of bundle %s: %w", b.GetName(), err)
	}
	for i := range list.Items {
		rev := &list.Items[i]
		if slices.Contains(keep, rev.Name) || !metav1.IsControlledBy(rev, b) {
			continue
		}
		gone := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: rev.Name, Namespace: rev.Namespace}}
		if err := s.Client.Delete(ctx, gone, client.Preconditions{UID: &rev.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("dropping an old revision of bundle %s: %w", b.GetName(), err)
		}
	}
	return nil
}
