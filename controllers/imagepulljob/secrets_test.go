// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/apiserver"
)

func TestPullSecrets(t *testing.T) {
	_, api := apiserver.Serve(t)
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: configNamespace}}); err != nil {
		t.Fatal(err)
	}
	n := 0
	start := func(name string, f func(w *world)) {
		t.Run(name, func(t *testing.T) {
			n++
			f(begin(t, api, fmt.Sprintf("secret-%d", n), 1))
		})
	}
	secret := func(w *world, namespace, name, password string) *corev1.Secret {
		w.Helper()
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte(`{"auth":"` + password + `"}`)}}
		if err := api.Create(w.Context(), s); err != nil {
			w.Fatal(err)
		}
		return s
	}
	with := func(names ...string) func(*kruise.ImagePullJob) {
		return func(job *kruise.ImagePullJob) { job.Spec.PullSecrets = names }
	}
	copied := func(w *world) []corev1.Secret {
		w.Helper()
		all := &corev1.SecretList{}
		if err := api.List(w.Context(), all, client.InNamespace(configNamespace)); err != nil {
			w.Fatal(err)
		}
		var out []corev1.Secret
		for _, s := range all.Items {
			if strings.HasPrefix(s.Annotations[kruise.ImagePullJobSourceKey], w.ns+"/") {
				out = append(out, s)
			}
		}
		return out
	}

	start("a secret is copied to where nodes read it, kept equal, and goes with its last job", func(w *world) {
		source := secret(w, w.ns, "login", "one")
		w.job(with("login"))
		if again := w.reconcile(); again != copyAgain {
			t.Errorf("again in %s", again)
		}
		all := copied(w)
		if len(all) != 1 {
			t.Fatalf("got %v", all)
		}
		c := all[0]
		want := map[string]string{
			kruise.ImagePullJobSourceKey: w.ns + "/login", kruise.ImagePullJobSourceUIDKey: string(source.UID),
			kruise.ImagePullJobReferencesKey: w.ns + "/warm", kruise.ImagePullJobModeKey: "batch",
		}
		if fmt.Sprint(c.Annotations) != fmt.Sprint(want) || string(c.Data[corev1.DockerConfigKey]) != `{"auth":"one"}` || !strings.HasPrefix(c.Name, "login-") || len(c.Name) != len("login-")+6 {
			t.Errorf("got %+v", c)
		}
		if got := w.image(0).Spec.Images["nginx"].PullSecrets; len(got) != 1 || got[0] != (kruise.ReferenceObject{Namespace: configNamespace, Name: c.Name, Mode: "batch"}) {
			t.Errorf("got %v", got)
		}

		source.Data[corev1.DockerConfigKey] = []byte(`{"auth":"two"}`)
		if err := api.Update(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		other := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "another"}}
		other.Spec.Image, other.Spec.PullSecrets, other.Spec.Selector = "nginx:1.29", []string{"login"}, w.get().Spec.Selector
		if err := api.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(copyAgain)
		if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)}); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		if c = copied(w)[0]; string(c.Data[corev1.DockerConfigKey]) != `{"auth":"two"}` || c.Annotations[kruise.ImagePullJobReferencesKey] != w.ns+"/another,"+w.ns+"/warm" {
			t.Errorf("got %+v", c)
		}
		version := c.ResourceVersion
		w.restart()
		w.reconcile()
		if c = copied(w)[0]; c.ResourceVersion != version {
			t.Error("a copy that is equal was written")
		}

		w.tell(done, 0)
		w.reconcile() // the job ends
		if c = copied(w)[0]; c.Annotations[kruise.ImagePullJobReferencesKey] != w.ns+"/another" {
			t.Errorf("got %+v", c.Annotations)
		}
		if err := api.Delete(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)}); err != nil {
			t.Fatal(err)
		}
		if all := copied(w); len(all) > 0 {
			t.Errorf("got %v", all)
		}
	})

	start("a copy stays, and follows its source, until its job has ended and its time has run", func(w *world) {
		source := secret(w, w.ns, "login", "one")
		w.job(func(job *kruise.ImagePullJob) {
			job.Spec.PullSecrets, job.Spec.CompletionPolicy.TTLSecondsAfterFinished = []string{"login"}, ptr.To[int32](60)
		})
		w.reconcile()
		w.tell(done, 0)
		if again := w.reconcile(); again > copyAgain || w.get().Status.CompletionTime == nil || len(copied(w)) != 1 {
			t.Errorf("again in %s, with %v", again, copied(w))
		}
		source.Data[corev1.DockerConfigKey] = []byte(`{"auth":"two"}`)
		if err := api.Update(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(copyAgain)
		w.reconcile()
		if all := copied(w); len(all) != 1 || string(all[0].Data[corev1.DockerConfigKey]) != `{"auth":"two"}` {
			t.Errorf("got %v", all)
		}
		w.now = w.now.Add(time.Minute)
		w.reconcile()
		if all := copied(w); len(all) > 0 || w.get() != nil {
			t.Errorf("got %v of %v", all, w.get())
		}
	})

	start("the copy of a source that goes, or is none for registries any more, goes too, and comes again with it", func(w *world) {
		source := secret(w, w.ns, "login", "one")
		w.job(with("login"))
		w.reconcile()
		again := func(kind corev1.SecretType, data map[string][]byte) {
			t.Helper()
			if err := api.Delete(t.Context(), source); err != nil {
				t.Fatal(err)
			}
			if kind != "" {
				source = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "login"}, Type: kind, Data: data}
				if err := api.Create(t.Context(), source); err != nil {
					t.Fatal(err)
				}
			}
			w.now = w.now.Add(copyAgain)
			w.reconcile()
		}
		again(corev1.SecretTypeOpaque, nil)
		if all := copied(w); len(all) > 0 {
			t.Errorf("got %v", all)
		}
		again(corev1.SecretTypeDockercfg, map[string][]byte{corev1.DockerConfigKey: []byte(`{"auth":"two"}`)})
		if all := copied(w); len(all) != 1 || string(all[0].Data[corev1.DockerConfigKey]) != `{"auth":"two"}` {
			t.Errorf("got %v", all)
		}
		again("", nil)
		if all := copied(w); len(all) > 0 || meta.FindStatusCondition(w.get().Status.Conditions, kruise.ImagePullJobSecretMissing) == nil {
			t.Errorf("got %v", all)
		}
	})

	start("a job among the copies uses its secrets as they are", func(w *world) {
		secret(w, configNamespace, "plain", "one")
		w.ns = configNamespace
		w.job(func(job *kruise.ImagePullJob) {
			job.Spec.PullSecrets = []string{"plain", "none"}
			job.Spec.Selector.MatchLabels["of"] = fmt.Sprintf("secret-%d", n)
		})
		w.reconcile()
		w.ns = fmt.Sprintf("secret-%d", n)
		if got := w.image(0).Spec.Images["nginx"].PullSecrets; len(got) != 1 || got[0] != (kruise.ReferenceObject{Namespace: configNamespace, Name: "plain"}) {
			t.Errorf("got %v", got)
		}
	})

	start("a secret that is not there, or that the manager may not read, is reported and left out", func(w *world) {
		secret(w, w.ns, "mine", "one")
		w.r.Live = &refusing{api, types.NamespacedName{Namespace: w.ns, Name: "mine"}}
		w.job(with("none", "mine"))
		w.reconcile()
		w.expect([]int{0}, 1, 1, 0, 0, "job is running, no progress")
		c := meta.FindStatusCondition(w.get().Status.Conditions, kruise.ImagePullJobSecretMissing)
		want := "secret " + w.ns + "/none is not there; the manager may not read secret " + w.ns + "/mine: bind the ClusterRole kruise-pull-secrets"
		if c == nil || !strings.Contains(c.Message, want) {
			t.Errorf("got %+v", c)
		}
		w.r.Live = api // it is bound
		w.now = w.now.Add(freshFor + time.Second)
		w.reconcile()
		if got := w.image(0).Spec.Images["nginx"]; len(got.PullSecrets) != 1 || got.Tags[0].Version != 0 {
			t.Errorf("got %+v", got)
		}
	})

	start("a secret of a type that is not for registries is reported and not copied", func(w *world) {
		for name, kind := range map[string]corev1.SecretType{"opaque": corev1.SecretTypeOpaque, "token": corev1.SecretTypeServiceAccountToken, "tls": corev1.SecretTypeTLS, "ssh": corev1.SecretTypeSSHAuth} {
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}}, Type: kind}
			s.Data = map[string][]byte{corev1.TLSCertKey: nil, corev1.TLSPrivateKeyKey: nil, corev1.SSHAuthPrivateKey: []byte("key")}
			if err := api.Create(w.Context(), s); err != nil {
				w.Fatal(err)
			}
		}
		w.job(with("opaque", "token", "tls", "ssh"))
		w.reconcile()
		if all := copied(w); len(all) > 0 {
			t.Errorf("copied %v", all)
		}
		c := meta.FindStatusCondition(w.get().Status.Conditions, kruise.ImagePullJobSecretMissing)
		for _, want := range []string{"/opaque has type \"Opaque\", want kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg", "/token has type", "/tls has type", "/ssh has type"} {
			if c == nil || !strings.Contains(c.Message, want) {
				t.Errorf("got %+v, want %s", c, want)
			}
		}
	})

	start("a secret of another source is left alone", func(w *world) {
		w.job(with("login"))
		source := secret(w, w.ns, "login", "one")
		first, err := w.r.findSecretCopy(t.Context(), client.ObjectKeyFromObject(source))
		if err != nil {
			t.Fatal(err)
		}
		taken := secret(w, configNamespace, first.Name, "of another one")
		w.reconcile()
		if all := copied(w); len(all) != 1 || all[0].Name == taken.Name {
			t.Errorf("got %v", all)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(taken), taken); err != nil || string(taken.Data[corev1.DockerConfigKey]) != `{"auth":"of another one"}` {
			t.Errorf("got %+v, %v", taken, err)
		}
	})
}

// refusing may not read one secret.
type refusing struct {
	client.Reader
	what types.NamespacedName
}

func (r *refusing) Get(ctx context.Context, key types.NamespacedName, o client.Object, opts ...client.GetOption) error {
	_, secret := o.(*corev1.Secret)
	_, metadata := o.(*metav1.PartialObjectMetadata)
	if (secret || metadata) && key == r.what {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
	}
	return r.Reader.Get(ctx, key, o, opts...)
}
