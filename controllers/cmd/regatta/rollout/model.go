// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
)

// frame is how often the live view takes a snapshot.
const frame = 200 * time.Millisecond

// seen is a message with the current snapshot.
type seen struct {
	snapshot snapshot
	at       time.Time
	last     bool
	err      error
}

// model is the live view. It only keeps the last message.
type model struct {
	rollout       *rollout
	style         styles
	width, height int
	seen          seen
	started       bool
	err           error
}

func newModel(r *rollout, renderer *lipgloss.Renderer) model {
	return model{rollout: r, style: newStyles(renderer), width: 80}
}

func (m model) pollSnapshot() tea.Msg {
	s, last, err := m.rollout.nextSnapshot()
	return seen{snapshot: s, at: m.rollout.now(), last: last, err: err}
}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return m.pollSnapshot }

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyMsg:
		switch msg.String() {
		case "q", "esc":
			m.seen.last = true
			return m, tea.Quit
		case "ctrl+c":
			m.seen.last, m.err = true, errInterrupted
			return m, tea.Quit
		}
	case seen:
		m.seen, m.started = msg, true
		if msg.last {
			m.err = msg.err
			return m, tea.Quit
		}
		return m, tea.Tick(frame, func(time.Time) tea.Msg { return m.pollSnapshot() })
	}
	return m, nil
}

// View implements tea.Model.
func (m model) View() string {
	if !m.started || m.seen.snapshot.state == nil {
		return ""
	}
	return m.style.renderView(m.seen, m.width, m.height)
}
