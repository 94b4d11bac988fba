// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/engine/recovery"
)

// The ConfigMap in which the API server publishes the CA of client certificates, and the CA of the
// certificate that it uses itself when it passes on a user's request.
const (
	authNamespace = "kube-system"
	authConfigMap = "extension-apiserver-authentication"
	clientCAKey   = "client-ca-file"
	proxyCAKey    = "requestheader-client-ca-file"
)

// NewDelegatedAuth authenticates callers by their token or their client certificate, and authorizes
// them, by asking the API server. Answers are cached for seconds. A client with the certificate that
// the API server passes on requests with may name the user of the request in headers.
func NewDelegatedAuth(ctx context.Context, config *rest.Config) (authenticator.Request, authorizer.Authorizer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for reviews: %w", err)
	}
	// If the API server accepts no client certificates, there is no CA, and only tokens are accepted.
	ca, err := watchCA(ctx, client, "client-ca", clientCAKey)
	if err != nil {
		return nil, nil, err
	}
	proxyCA, err := watchCA(ctx, client, "request-header", proxyCAKey)
	if err != nil {
		return nil, nil, err
	}
	proxy := headerrequest.NewRequestHeaderAuthRequestController(authConfigMap, authNamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers", "requestheader-extra-headers-prefix", "requestheader-allowed-names")
	_ = proxy.RunOnce(ctx) // it may not exist
	recovery.GoUntilDone(ctx, "explain", func(ctx context.Context) { proxy.Run(ctx, 1) })
	who, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient:            client.AuthenticationV1(),
		TokenAccessReviewTimeout:           10 * time.Second,
		WebhookRetryBackoff:                reviewBackoff(),
		CacheTTL:                           10 * time.Second,
		ClientCertificateCAContentProvider: ca,
		RequestHeaderConfig: &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider:   proxyCA,
			UsernameHeaders:     headerrequest.StringSliceProviderFunc(proxy.UsernameHeaders),
			UIDHeaders:          headerrequest.StringSliceProviderFunc(proxy.UIDHeaders),
			GroupHeaders:        headerrequest.StringSliceProviderFunc(proxy.GroupHeaders),
			ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(proxy.ExtraHeaderPrefixes),
			AllowedClientNames:  headerrequest.StringSliceProviderFunc(proxy.AllowedClientNames),
		},
	}.New()
	if err != nil {
		return nil, nil, fmt.Errorf("making the authenticator: %w", err)
	}
	may, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             10 * time.Second,
		DenyCacheTTL:              10 * time.Second,
		WebhookRetryBackoff:       reviewBackoff(),
	}.New()
	if err != nil {
		return nil, nil, fmt.Errorf("making the authorizer: %w", err)
	}
	return who, may, nil
}

// reviewBackoff is the backoff of the retries of a review that failed, as in aggregated API servers. Their package of options has it
// too, but that package links a whole API server with its storage.
func reviewBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
}

// watchCA follows a CA in the ConfigMap, which may be missing.
func watchCA(ctx context.Context, client kubernetes.Interface, purpose, key string) (dynamiccertificates.CAContentProvider, error) {
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController(purpose, authNamespace, authConfigMap, key, client)
	if err != nil {
		return nil, fmt.Errorf("watching the CA in %s of ConfigMap %s/%s: %w", key, authNamespace, authConfigMap, err)
	}
	_ = ca.RunOnce(ctx) // it may not exist
	recovery.GoUntilDone(ctx, "explain", func(ctx context.Context) { ca.Run(ctx, 1) })
	return ca, nil
}
