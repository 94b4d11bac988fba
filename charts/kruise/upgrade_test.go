// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/controllers/webhook/convert"
	"github.com/regatta-sh/regatta/controllers/webhook/server"
)

// keep annotates what Helm leaves behind.
const keep = "helm.sh/resource-policy"

// The CRDs are those that controller-gen wrote, with a conversion where there is
// something to convert, and nothing else.
func TestCRDs(t *testing.T) {
	r := render(t)
	paths, err := filepath.Glob("files/crds/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	var converting []string
	for _, resource := range convert.ConvertibleResources(scheme) {
		converting = append(converting, resource.String())
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, want); err != nil {
			t.Fatal(err)
		}
		got := crd(t, r, want.Name)
		if converts := slices.Contains(converting, want.Name); converts != (got.Spec.Conversion != nil) {
			t.Errorf("that %s converts is %t, and the chart has conversion %v", want.Name, converts, got.Spec.Conversion)
		} else if converts {
			service := got.Spec.Conversion.Webhook.ClientConfig.Service
			if *service.Path != server.ConvertPath || service.Name != "kruise-webhook-service" || service.Namespace != "kruise-system" || *service.Port != 443 {
				t.Errorf("%s is converted by %v", want.Name, service)
			}
			if versions := got.Spec.Conversion.Webhook.ConversionReviewVersions; !cmp.Equal(versions, []string{"v1", "v1beta1"}) {
				t.Errorf("%s is converted in %v", want.Name, versions)
			}
		}
		if got.Annotations[keep] != "keep" {
			t.Errorf("%s goes with the release: %v", want.Name, got.Annotations)
		}
		delete(got.Annotations, keep)
		got.Spec.Conversion, got.Labels = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is not what was generated:\n%s", want.Name, diff)
		}
	}
}

// upgrade does what Helm does to an object that the old and the new manifest
// have: a patch of three ways. It returns the object afterwards.
func upgrade[T any](t *testing.T, before, after, current T) T {
	t.Helper()
	var data [3][]byte
	for i, object := range []T{before, after, current} {
		var err error
		if data[i], err = json.Marshal(object); err != nil {
			t.Fatal(err)
		}
	}
	var result T
	meta, err := strategicpatch.NewPatchMetaFromStruct(result)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(data[0], data[1], data[2], meta, true)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(data[2], patch, meta)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(merged, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// An upgrade keeps what the manager filled in, as the chart never says it: the
// CA of the webhooks and the certificate itself.
func TestAnUpgradeKeepsCertificates(t *testing.T) {
	before, after := render(t), render(t, "--set", "webhookConfiguration.timeoutSeconds=5", "--set", "webhookConfiguration.url=https://localhost:9443")
	ca := []byte("the CA")

	t.Run("of the mutating webhooks", func(t *testing.T) {
		current := mutating(t, before).DeepCopy()
		current.Webhooks[0].ClientConfig.CABundle = ca
		got := upgrade(t, *mutating(t, before), *mutating(t, after), *current).Webhooks[0]
		checkUpgraded(t, got.ClientConfig, got.TimeoutSeconds, 5, ca)
	})
	t.Run("of the validating webhooks", func(t *testing.T) {
		current := validating(t, before).DeepCopy()
		for i := range current.Webhooks {
			current.Webhooks[i].ClientConfig.CABundle = ca
		}
		for _, got := range upgrade(t, *validating(t, before), *validating(t, after), *current).Webhooks {
			want := int32(5)
			if strings.HasSuffix(got.Name, "policybundle.kb.io") {
				want = 10 // the least that it has
			}
			checkUpgraded(t, got.ClientConfig, got.TimeoutSeconds, want, ca)
		}
	})
	t.Run("of the conversion", func(t *testing.T) {
		current := crd(t, before, cloneSets).DeepCopy()
		current.Spec.Conversion.Webhook.ClientConfig.CABundle = ca
		got := upgrade(t, *crd(t, before, cloneSets), *crd(t, after, cloneSets), *current).Spec.Conversion.Webhook.ClientConfig
		if !bytes.Equal(got.CABundle, ca) || got.URL == nil || got.Service != nil {
			t.Errorf("it is %v", got)
		}
	})
	t.Run("in the secret", func(t *testing.T) {
		secret := func(r release) *corev1.Secret { return get[*corev1.Secret](t, r, "kruise-webhook-certs") }
		if len(secret(before).Data)+len(secret(before).StringData) != 0 {
			t.Error("a key is rendered, and so kept in the release")
		}
		current := secret(before).DeepCopy()
		current.Data = map[string][]byte{"tls.key": []byte("the key")}
		if got := upgrade(t, *secret(before), *secret(after), *current); string(got.Data["tls.key"]) != "the key" {
			t.Errorf("it has %v", got.Data)
		}
	})
}

func checkUpgraded(t *testing.T, got admissionv1.WebhookClientConfig, timeout *int32, want int32, ca []byte) {
	t.Helper()
	if !bytes.Equal(got.CABundle, ca) || got.URL == nil || got.Service != nil || *timeout != want {
		t.Errorf("it is called at %v within %d s", got, *timeout)
	}
}
