// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// pageSize is how many objects are read in one request.
const pageSize = 500

// ListAll reads all objects of a resource that a label selector selects, page by page. The selector "" selects all.
func ListAll(ctx context.Context, client dynamic.ResourceInterface, selector string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		page, err := client.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			out = append(out, &page.Items[i])
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}
