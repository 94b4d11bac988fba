// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/manager"
)

// bundleTakes is how long the managers may take to use a bundle.
const bundleTakes = time.Minute

// installBundle creates the ClusterPolicyBundle of a file, and waits until its rules are in use.
func (t *Target) installBundle(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the bundle: %w", err)
	}
	bundle := &policy.ClusterPolicyBundle{}
	if err := yaml.UnmarshalStrict(text, bundle); err != nil {
		return fmt.Errorf("reading the bundle %s: %w", file, err)
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		return err
	}
	c, err := client.New(t.Config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := c.Create(ctx, bundle); err != nil {
		return fmt.Errorf("creating the bundle %s: %w", bundle.Name, err)
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, bundleTakes, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(bundle), bundle)
		return meta.IsStatusConditionTrue(bundle.Status.Conditions, policy.PolicyBundleReady), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the bundle %s to be in use, conditions %v: %w", bundle.Name, bundle.Status.Conditions, err)
	}
	return nil
}
