// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/engine/recovery"
)

// The ConfigMap in which the API server publishes the CA of client
// certificates.
const (
	authNamespace = "kube-system"
	authConfigMap = "extension-apiserver-authentication"
	clientCAKey   = "client-ca-file"
)

// Delegate asks the API server who callers are, by their token or their client
// certificate, and what they may do. Answers are cached for seconds.
func Delegate(ctx context.Context, config *rest.Config) (authenticator.Request, authorizer.Authorizer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for reviews: %w", err)
	}
	// Where the API server takes no client certificates there is no CA either,
	// and tokens are all there is.
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", authNamespace, authConfigMap, clientCAKey, client)
	if err != nil {
		return nil, nil, fmt.Errorf("watching the CA of client certificates: %w", err)
	}
	_ = ca.RunOnce(ctx) // it may not exist
	recovery.GoUntilDone(ctx, "explain", func(ctx context.Context) { ca.Run(ctx, 1) })
	who, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient:            client.AuthenticationV1(),
		TokenAccessReviewTimeout:           10 * time.Second,
		WebhookRetryBackoff:                options.DefaultAuthWebhookRetryBackoff(),
		CacheTTL:                           10 * time.Second,
		ClientCertificateCAContentProvider: ca,
	}.New()
	if err != nil {
		return nil, nil, fmt.Errorf("making the authenticator: %w", err)
	}
	may, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             10 * time.Second,
		DenyCacheTTL:              10 * time.Second,
		WebhookRetryBackoff:       options.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, nil, fmt.Errorf("making the authorizer: %w", err)
	}
	return who, may, nil
}
