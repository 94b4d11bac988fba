// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"golang.org/x/net/dns/dnsmessage"
)

func services(t *testing.T) *Services {
	t.Helper()
	hostname, no := "db-0", false
	made, err := NewServices(t.Context(), fake.NewClientset(
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "10.88.32.7"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "empty"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-x", Labels: map[string]string{discoveryv1.LabelServiceName: "db"}},
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.88.129.2"}, Hostname: &hostname},
				{Addresses: []string{"10.88.130.2"}},
				{Addresses: []string{"10.88.131.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &no}},
			},
		},
	))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		name, asked string
		kind        dnsmessage.Type
		rcode       dnsmessage.RCode
		want        []string
	}{
		{"a service has its address", "web.default.svc.cluster.local.", dnsmessage.TypeA, 0, []string{"10.88.32.7"}},
		{"whatever the case", "Web.Default.SVC.cluster.local.", dnsmessage.TypeA, 0, []string{"10.88.32.7"}},
		{"a headless one has those of its ready pods", "db.default.svc.cluster.local.", dnsmessage.TypeA, 0, []string{"10.88.129.2", "10.88.130.2"}},
		{"a pod with a host name has its own", "db-0.db.default.svc.cluster.local.", dnsmessage.TypeA, 0, []string{"10.88.129.2"}},
		{"a pod that is not there is no name", "db-1.db.default.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeNameError, nil},
		{"a headless service without pods is one", "empty.default.svc.cluster.local.", dnsmessage.TypeA, 0, nil},
		{"there are no IPv6 addresses", "web.default.svc.cluster.local.", dnsmessage.TypeAAAA, 0, nil},
		{"another namespace's service is not found", "web.other.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeNameError, nil},
		{"nor is the world", "example.com.", dnsmessage.TypeA, dnsmessage.RCodeNameError, nil},
		{"nor the domain itself", "svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeNameError, nil},
	}
	resolver := services(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer := ask(t, resolver, test.asked, test.kind)
			if answer.RCode != test.rcode || len(answer.Answers) != len(test.want) || answer.ID != 7 || !answer.Response {
				t.Fatalf("got %+v", answer)
			}
			for i, resource := range answer.Answers {
				body, ok := resource.Body.(*dnsmessage.AResource)
				if !ok || netip.AddrFrom4(body.A).String() != test.want[i] {
					t.Errorf("got %+v, want %s", resource.Body, test.want[i])
				}
			}
		})
	}
}

func ask(t *testing.T, resolver Resolver, name string, kind dnsmessage.Type) dnsmessage.Message {
	t.Helper()
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	response, err := respond(packed, resolver)
	if err != nil {
		t.Fatal(err)
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(response); err != nil {
		t.Fatal(err)
	}
	return answer
}

func FuzzRespond(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03web\x07default\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, query []byte) {
		// Whatever comes over the network, it must not end the server.
		_, _ = respond(query, nothing{})
	})
}

type nothing struct{}

func (nothing) Lookup(string) ([]netip.Addr, bool) { return nil, false }
