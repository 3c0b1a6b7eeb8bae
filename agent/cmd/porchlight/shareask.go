package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
)

// Sharing without the owner secret is publishing: the owner is asked elsewhere.

// ask publishes the port, waits for the owner, and stays until ctx ends.
func (s *sharing) ask(ctx context.Context) error {
	client, err := s.c.open()
	if err != nil {
		return err
	}
	before, err := client.Status(ctx)
	if err != nil {
		return err
	}
	label := s.name
	if s.name == "" {
		s.name, label = engine.Suggest(func(name, label string) bool {
			// Of those that are not live only the owner knows.
			return name == before.Name || slices.ContainsFunc(before.Apps, func(a agentapi.AppSummary) bool {
				return a.Name == name || strings.EqualFold(a.Label, label)
			})
		}, directoryName(), "Port "+strconv.Itoa(s.port))
	}
	had := slices.IndexFunc(before.Apps, func(a agentapi.AppSummary) bool { return a.Name == s.name })
	if s.label == "" && had >= 0 {
		s.label = before.Apps[had].Label
	}
	s.label = cmp.Or(s.label, label)
	if s.pub, err = client.Publish(context.WithoutCancel(ctx), agentapi.PublishRequest{Name: s.name, Label: s.label, LocalPort: s.port}); err != nil {
		return err
	}
	if !s.keep {
		s.back = func(ctx context.Context) error {
			if had >= 0 {
				was := before.Apps[had]
				if _, err := client.Publish(ctx, agentapi.PublishRequest{Name: was.Name, Label: was.Label, LocalPort: was.LocalPort}); err != nil {
					return err
				}
			}
			return s.unpublish(ctx, client)
		}
	}
	if s.pub.Status == agentapi.StatusPending {
		s.c.line("%s on port %d waits for the owner: in the menu bar, or by: porchlight approve %s", printable(s.label), s.port, s.name)
		pub, err := waitLive(ctx, client, s.name, func() {})
		if pub.Status != "" {
			s.pub = pub
		}
		if err != nil {
			return err
		}
	}
	s.c.line("The owner has approved %s.", printable(s.label))
	s.sayAddress()
	s.c.line("Ctrl-C takes it off its address again.")
	<-ctx.Done()
	return ctx.Err()
}

func (s *sharing) unpublish(ctx context.Context, client *agentapi.Client) error {
	_, err := client.Unpublish(ctx, s.name)
	switch {
	case agentapi.CodeOf(err) == agentapi.CodeNotFound:
		return nil // denied or revoked
	case err != nil:
		return err
	case s.pub.Status == agentapi.StatusPending:
		s.c.line("The request for %s is withdrawn.", s.name)
	default:
		s.c.line("%s is off its address.", s.name)
	}
	return nil
}
