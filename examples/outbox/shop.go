package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tickonce/tickonce"
)

// shop charges orders and mails receipts.
type shop struct {
	eng   *tickonce.Engine
	clock *clock.Mock
	send  func(now time.Time, mail string) error
	out   io.Writer
}

// order takes an order and hands it to a cashier.
func (s *shop) order(ctx context.Context, text, cashier string) (*tickonce.Job, error) {
	if _, err := s.eng.Enqueue(ctx, "orders", []byte(text), tickonce.EnqueueOptions{}); err != nil {
		return nil, err
	}
	return s.eng.Claim(ctx, "orders", cashier)
}

// charge ends an order and puts its receipt into the outbox: both, or neither.
func (s *shop) charge(ctx context.Context, order *tickonce.Job) error {
	err := s.eng.Tx(ctx, func(tx *tickonce.Tx) error {
		if err := tx.Ack(order); err != nil {
			return err
		}
		receipt := fmt.Appendf(nil, "receipt for %s", order.Payload)
		_, err := tx.Outbox("mail").Enqueue(receipt, tickonce.OutboxOptions{})
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "charged: %s\n", order.Payload)
	return nil
}

// deliver empties the outbox. While it waits for a retry, a program sleeps (see
// ../service); here the clock is moved.
func (s *shop) deliver(ctx context.Context) error {
	outbox := s.eng.Outbox("mail")
	for {
		found, err := outbox.RunOnce(ctx, "mailer-1", s.mail)
		if err != nil {
			return err
		}
		if found {
			continue
		}
		next, waiting, err := outbox.NextClaimAt(ctx)
		if err != nil || !waiting {
			return err
		}
		s.clock.Set(next)
	}
}

// mail sends one receipt. An error brings it back later. A receipt whose
// acknowledgement was lost comes twice: the id of the entry tells.
func (s *shop) mail(_ context.Context, entry *tickonce.Job) error {
	if err := s.send(s.clock.Now(), string(entry.Payload)); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "sent: %s\n", entry.Payload)
	return nil
}

// requeueDead lists the dead receipts and enqueues them anew.
func (s *shop) requeueDead(ctx context.Context) error {
	outbox := s.eng.Outbox("mail")
	for dead, err := range outbox.Dead(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "dead after %d attempts: %s\n", dead.Attempts, dead.Payload)
		if _, err := outbox.Requeue(ctx, dead.ID); err != nil {
			return err
		}
	}
	return nil
}

// mailServer stands for the outside.
type mailServer struct {
	downUntil time.Time
	mended    bool
}

func (m *mailServer) send(now time.Time, mail string) error {
	switch {
	case now.Before(m.downUntil):
		return errors.New("connection refused")
	case !m.mended && !strings.HasSuffix(mail, ".org"):
		return errors.New("550 no such domain")
	default:
		return nil
	}
}
