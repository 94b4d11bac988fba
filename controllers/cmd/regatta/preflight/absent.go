// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ManagerDeployment is the name of the Deployment of the manager, of Regatta and of OpenKruise.
const ManagerDeployment = "kruise-controller-manager"

// withoutManager returns the report on a cluster that has no manager in the given namespace. Nothing prevents an installation only if
// nothing else of OpenKruise exists either: its manager may run in another namespace, or may have been deleted alone.
func (l *look) withoutManager(ctx context.Context) (Report, error) {
	elsewhere := &appsv1.DeploymentList{}
	err := l.List(ctx, elsewhere, client.MatchingFields{metav1.ObjectNameField: ManagerDeployment})
	if err != nil && !apierrors.IsForbidden(err) {
		return Report{}, fmt.Errorf("looking for the manager in other namespaces: %w", err)
	}
	for i := range elsewhere.Items {
		namespace := elsewhere.Items[i].Namespace
		l.addRow(Row{Effect: Blocks, Object: "Deployment " + namespace + "/" + ManagerDeployment, Field: "metadata.namespace", There: namespace, Here: "looked for in " + l.namespace,
			Do: "regatta preflight --manager-namespace " + namespace})
	}
	if apierrors.IsForbidden(err) {
		l.addRow(Row{Effect: Note, Object: "Deployment " + ManagerDeployment, Field: "metadata.namespace", There: "not in " + l.namespace + "; you may not list Deployments elsewhere", Here: "-",
			Do: "name its namespace with --manager-namespace"})
	}
	if len(elsewhere.Items) == 0 {
		if err := l.reportLeftovers(ctx); err != nil {
			return Report{}, err
		}
	}
	return Report{Rows: l.rows, Nothing: len(l.rows) == 0}, nil
}

// reportLeftovers reports the objects of OpenKruise that exist without a manager.
func (l *look) reportLeftovers(ctx context.Context) error {
	if err := l.checkCRDs(ctx); err != nil {
		return err
	}
	known := &metav1.PartialObjectMetadataList{}
	known.SetGroupVersionKind(crdList())
	if err := l.List(ctx, known); err != nil {
		return fmt.Errorf("listing CRDs: %w", err)
	}
	for i := range known.Items {
		if _, ours := CRDResource(known.Items[i].Name); ours {
			l.addRow(Row{Effect: Note, Object: "CRD " + known.Items[i].Name, Field: "metadata", There: "kept without a manager", Here: "taken over",
				Do: "helm upgrade --install kruise charts/kruise --take-ownership, with Helm 3.17 or newer"})
		}
	}
	for _, o := range []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kruise-mutating-webhook-configuration"}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kruise-validating-webhook-configuration"}},
	} {
		err := l.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading webhook configurations: %w", err)
		}
		l.addRow(Row{Effect: Differs, Object: "webhook configuration " + o.GetName(), Field: "webhooks", There: "nothing answers them", Here: "taken over",
			Do: "helm upgrade --install kruise charts/kruise --take-ownership, or delete it"})
	}
	return nil
}
