// SPDX-License-Identifier: Apache-2.0

package protection

// administered are the kinds by which the administrator of a cluster limits what the users of a namespace may do, by group and
// resource. Who may edit a namespace may also put a PolicyBundle into it, so that a denial of that bundle could keep such a limit
// from being changed.
var administered = map[[2]string]bool{
	{"", "namespaces"}:                            true,
	{"", "resourcequotas"}:                        true,
	{"", "limitranges"}:                           true,
	{"rbac.authorization.k8s.io", "roles"}:        true,
	{"rbac.authorization.k8s.io", "rolebindings"}: true,
	{"networking.k8s.io", "networkpolicies"}:      true,
	{"policy.kruise.io", "policybundles"}:         true,
	{"policy.kruise.io", "clusterpolicybundles"}:  true,
}

// IsAdministered reports whether the bundle of a namespace takes no part in decisions about a resource.
func IsAdministered(group, resource string) bool { return administered[[2]string{group, resource}] }
