// SPDX-License-Identifier: Apache-2.0

// Package dns answers for the names of services in a local cluster: enough for
// pods to find each other by name, and nothing about the world outside.
package dns

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"

	"golang.org/x/net/dns/dnsmessage"
)

// Domain is the domain that all names end in.
const Domain = "cluster.local"

// ttl is short: tests look a name up to see that it has changed.
const ttl = 1

// A Resolver knows the addresses of names.
type Resolver interface {
	// Lookup returns the addresses of a name in Domain, without the final dot,
	// and false if there is no such name.
	Lookup(name string) ([]netip.Addr, bool)
}

// Serve answers queries at address, which is HOST:PORT, until ctx ends. It
// serves UDP only: no answer is so long that it would need TCP.
func Serve(ctx context.Context, address string, resolver Resolver, logger *log.Logger) error {
	connection, err := net.ListenPacket("udp", address)
	if err != nil {
		return fmt.Errorf("listening for names: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	buffer := make([]byte, 4096)
	for {
		length, client, err := connection.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			logger.Printf("reading a query: %v", err)
			continue
		}
		answer, err := respond(buffer[:length], resolver)
		if err != nil {
			logger.Printf("answering %s: %v", client, err)
			continue
		}
		if _, err := connection.WriteTo(answer, client); err != nil {
			logger.Printf("answering %s: %v", client, err)
		}
	}
}

// respond turns a query into its answer.
func respond(query []byte, resolver Resolver) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil {
		return nil, fmt.Errorf("reading a query: %w", err)
	}
	question, err := parser.Question()
	if err != nil {
		return nil, fmt.Errorf("reading a question: %w", err)
	}
	message := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, Authoritative: true,
			RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{question},
	}
	addresses, known := resolver.Lookup(canonical(question.Name.String()))
	switch {
	case !known:
		message.RCode = dnsmessage.RCodeNameError
	case question.Type == dnsmessage.TypeA:
		for _, address := range addresses {
			message.Answers = append(message.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class, TTL: ttl},
				Body:   &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	// Other types of a known name have an empty answer: programs that ask for
	// IPv6 first must not conclude that the name does not exist.
	packed, err := message.Pack()
	if err != nil {
		return nil, fmt.Errorf("packing an answer: %w", err)
	}
	return packed, nil
}
