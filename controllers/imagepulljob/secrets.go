// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/redact"
)

// The manager may get secrets of a namespace if a RoleBinding in it allows that: see the value
// imagePullJobs.secretNamespaces of the chart. Copies are in kruise-daemon-config only.
//
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch;delete

// configNamespace is where node agents read pull secrets.
const configNamespace = "kruise-daemon-config"

const (
	// freshFor is how long a copy counts as unchanged while its source does not change.
	freshFor = time.Minute
	// copyAgain is how soon the sources of a job are read again: a copy follows within ten seconds. Sources are not
	// watched, since the manager may get single secrets and list none.
	copyAgain = 5 * time.Second
	// lookFor is how long the jobs of a source share one read of it.
	lookFor = 3 * time.Second
)

// copies are the copies that were compared with their sources lately, by job and source, and the sources.
type copies struct {
	mu      sync.Mutex
	seen    map[string]compared
	sources map[types.NamespacedName]look
}

type compared struct {
	at      time.Time
	version string
	ref     *kruise.ReferenceObject // nil if the source cannot be read
	fault   string
}

// look is the state of a source when it was read.
type look struct {
	at      time.Time
	version string
}

// syncSecrets is IMG-09: it copies the secrets that nodes log in with for a job. A source that cannot
// be read is left out, and faults say why.
func (r *Reconciler) syncSecrets(ctx context.Context, job *kruise.ImagePullJob) (refs []kruise.ReferenceObject, faults []string, err error) {
	for _, name := range job.Spec.PullSecrets {
		key := string(job.UID) + "/" + name
		version, err := r.sourceVersion(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name})
		if err != nil {
			return nil, nil, err
		}
		r.copies.mu.Lock()
		c, ok := r.copies.seen[key]
		r.copies.mu.Unlock()
		if !ok || c.version != version || !r.Now().Before(c.at.Add(freshFor)) {
			if c, err = r.copySecret(ctx, job, name); err != nil {
				return nil, nil, err
			}
			c.version = version
			r.copies.mu.Lock()
			r.copies.seen[key] = c
			r.copies.mu.Unlock()
		}
		if c.ref == nil {
			faults = append(faults, c.fault)
		} else if !slices.Contains(refs, *c.ref) {
			refs = append(refs, *c.ref)
		}
	}
	return refs, faults, nil
}

// sourceVersion returns the current version of a source, or why it has none, by its metadata alone.
func (r *Reconciler) sourceVersion(ctx context.Context, source types.NamespacedName) (string, error) {
	r.copies.mu.Lock()
	last, ok := r.copies.sources[source]
	r.copies.mu.Unlock()
	if ok && r.Now().Before(last.at.Add(lookFor)) {
		return last.version, nil
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	last.at = r.Now()
	switch err := r.Live.Get(ctx, source, o); {
	case apierrors.IsNotFound(err):
		last.version = "not found"
	case apierrors.IsForbidden(err):
		last.version = "forbidden"
	case err != nil:
		return "", fmt.Errorf("looking at pull secret %s: %w", source, err)
	default:
		last.version = string(o.UID) + "/" + o.ResourceVersion
	}
	r.copies.mu.Lock()
	defer r.copies.mu.Unlock()
	r.copies.sources[source] = last
	return last.version, nil
}

// copySecret copies one secret of a job to where node agents read it.
func (r *Reconciler) copySecret(ctx context.Context, job *kruise.ImagePullJob, name string) (compared, error) {
	source := &corev1.Secret{}
	key := types.NamespacedName{Namespace: job.Namespace, Name: name}
	out := compared{at: r.Now()}
	switch err := r.Live.Get(ctx, key, source); {
	case apierrors.IsNotFound(err):
		out.fault = fmt.Sprintf("secret %s is not there", key)
		return out, r.dropCopy(ctx, key)
	case apierrors.IsForbidden(err):
		out.fault = fmt.Sprintf("the manager may not read secret %s: bind the ClusterRole kruise-pull-secrets to it in the namespace, or add the namespace to imagePullJobs.secretNamespaces of the chart", key)
		return out, nil
	case err != nil:
		return out, fmt.Errorf("reading pull secret %s: %w", key, err)
	}
	if !isPullSecret(source) {
		out.fault = fmt.Sprintf("secret %s has type %q, want %s or %s: only credentials of registries are copied to where nodes read them", key, source.Type, corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg)
		return out, r.dropCopy(ctx, key)
	}
	if job.Namespace == configNamespace {
		out.ref = &kruise.ReferenceObject{Namespace: job.Namespace, Name: name}
		return out, nil
	}
	target, err := r.findSecretCopy(ctx, key)
	if err != nil {
		return out, err
	}
	out.ref = &kruise.ReferenceObject{Namespace: configNamespace, Name: target.Name, Mode: kruise.PullSecretModeBatch}
	return out, r.writeCopy(ctx, job, source, target)
}

// writeCopy brings the copy of a source up to date, and adds a job to those that refer to it.
func (r *Reconciler) writeCopy(ctx context.Context, job *kruise.ImagePullJob, source, target *corev1.Secret) (err error) {
	key := client.ObjectKeyFromObject(source)
	before := target.DeepCopy()
	target.Data = source.Data
	target.Annotations = maps.Clone(target.Annotations)
	for k, v := range map[string]string{
		kruise.ImagePullJobSourceKey: key.String(), kruise.ImagePullJobSourceUIDKey: string(source.UID),
		kruise.ImagePullJobModeKey: string(kruise.PullSecretModeBatch), kruise.ImagePullJobReferencesKey: referringJobs(target, job, true),
	} {
		metav1.SetMetaDataAnnotation(&target.ObjectMeta, k, v)
	}
	switch {
	case target.UID != "" && target.Type != source.Type: // a type cannot be changed; the next round makes the copy anew
		if err := r.Client.Delete(ctx, target, client.Preconditions{UID: &target.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("replacing the copy of pull secret %s: %w", key, err)
		}
		return fmt.Errorf("replacing the copy of pull secret %s: it has type %q, and the secret has %q", key, target.Type, source.Type)
	case target.UID == "":
		target.Type = source.Type
		err = r.Client.Create(ctx, target)
	case !equality.Semantic.DeepEqual(before, target):
		err = r.Client.Patch(ctx, target, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("copying pull secret %s: %w", key, err)
	case err != nil: // the error may contain the secret, which must not be logged
		return redact.ContentsOf(source).Error("copying pull secret "+key.String(), err)
	}
	return nil
}

// dropCopy deletes the copy of a source that is gone, or that is no pull secret any more: no node may log in with credentials
// that their owner has removed.
func (r *Reconciler) dropCopy(ctx context.Context, source types.NamespacedName) error {
	if source.Namespace == configNamespace {
		return nil
	}
	target, err := r.findSecretCopy(ctx, source)
	if err != nil || target.UID == "" {
		return err
	}
	err = r.Client.Delete(ctx, target, client.Preconditions{UID: &target.UID, ResourceVersion: &target.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the copy of pull secret %s, which is gone: %w", source, err)
	}
	return nil
}

// isPullSecret reports whether a Secret has one of the two types that the kubelet accepts in imagePullSecrets. A Secret of
// another type may have other data, and every node agent can read the copies.
func isPullSecret(secret *corev1.Secret) bool {
	return secret.Type == corev1.SecretTypeDockerConfigJson || secret.Type == corev1.SecretTypeDockercfg
}

// findSecretCopy is the copy of a source, with no UID if there is none yet. The name of the copy is
// derived from the source, so that copies need not be listed.
func (r *Reconciler) findSecretCopy(ctx context.Context, source types.NamespacedName) (*corev1.Secret, error) {
	digest := sha256.Sum256([]byte(source.String()))
	for _, bytes := range []int{3, 16} {
		name := source.Name[:min(len(source.Name), 220)] + "-" + hex.EncodeToString(digest[:bytes])
		found := &corev1.Secret{}
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: configNamespace, Name: name}, found)
		switch {
		case apierrors.IsNotFound(err):
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: name}}, nil
		case err != nil:
			return nil, fmt.Errorf("reading the copy of pull secret %s: %w", source, err)
		case found.Annotations[kruise.ImagePullJobSourceKey] == source.String():
			return found, nil
		}
	}
	return nil, fmt.Errorf("copying pull secret %s: secrets of other sources in namespace %s have its names", source, configNamespace)
}

// referringJobs returns the jobs that refer to a copy, with one job added or removed.
func referringJobs(target *corev1.Secret, job *kruise.ImagePullJob, more bool) string {
	me := client.ObjectKeyFromObject(job).String()
	jobs := slices.DeleteFunc(strings.Split(target.Annotations[kruise.ImagePullJobReferencesKey], ","), func(j string) bool { return j == "" || j == me })
	if more {
		jobs = append(jobs, me)
	}
	slices.Sort(jobs)
	return strings.Join(jobs, ",")
}

// releaseSecrets removes a job from the copies of its secrets. A copy that no job refers to is
// deleted. A job without the finalizer has no copies.
func (r *Reconciler) releaseSecrets(ctx context.Context, job *kruise.ImagePullJob) error {
	if job.Namespace == configNamespace {
		return nil
	}
	for _, name := range job.Spec.PullSecrets {
		r.copies.mu.Lock()
		delete(r.copies.seen, string(job.UID)+"/"+name)
		delete(r.copies.sources, types.NamespacedName{Namespace: job.Namespace, Name: name})
		r.copies.mu.Unlock()
		target, err := r.findSecretCopy(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name})
		if err != nil {
			return err
		}
		if target.UID == "" {
			continue
		}
		before, left := target.DeepCopy(), referringJobs(target, job, false)
		switch {
		case left == "":
			err = r.Client.Delete(ctx, target, client.Preconditions{UID: &target.UID, ResourceVersion: &target.ResourceVersion})
		case left != target.Annotations[kruise.ImagePullJobReferencesKey]:
			metav1.SetMetaDataAnnotation(&target.ObjectMeta, kruise.ImagePullJobReferencesKey, left)
			err = r.Client.Patch(ctx, target, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("releasing the copy of pull secret %s/%s: %w", job.Namespace, name, err)
		}
	}
	return nil
}
