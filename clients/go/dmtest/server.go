// Package dmtest starts a real server of Durable Memory for tests, over a temporary file. Nothing is mocked, so what
// passes with it passes in production.
//
//	func TestMyAgentRemembers(t *testing.T) {
//		memory := dmtest.New(t).Client
//		...
//	}
package dmtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	durablememory "durablememory.dev/go"
)

const (
	commandVariable = "DURABLE_MEMORY_SERVER_COMMAND"
	defaultCommand  = "durable-memory"

	// Below the ephemeral range of Linux and macOS: no outgoing connection takes the port while the server starts.
	firstPort, lastPort = 20_000, 32_000
	startAttempts       = 3
	startTimeout        = 60 * time.Second
	probeTimeout        = 200 * time.Millisecond
	longestProbe        = 5 * time.Second
	stopTimeout         = 10 * time.Second
	logTail             = 4_000
)

// Server is one server of its own, on a loopback port. It asks for no credentials.
type Server struct {
	// Address is host:port, for code that makes its own client.
	Address string
	// Client is a client in a namespace of its own.
	Client *durablememory.Client

	folder  string
	chosen  settings
	command *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// Option says what server it is.
type Option func(*settings)

type settings struct {
	embeddingProvider string
}

// recallsByMeaning tells whether it will for sure.
func (s settings) recallsByMeaning() bool {
	return s.embeddingProvider != "none" && s.embeddingProvider != "auto"
}

// WithEmbeddingProvider says who makes vectors: "local" runs the packaged model of durable-memory[local]. Default: "none",
// recall by words only, the same on every machine.
func WithEmbeddingProvider(name string) Option {
	return func(s *settings) { s.embeddingProvider = name }
}

// New starts a server and ends it with the test. The test fails where it cannot be started: durable-memory must be on
// PATH (pip install durable-memory), or DURABLE_MEMORY_SERVER_COMMAND must say how to run it.
func New(t testing.TB, options ...Option) *Server {
	t.Helper()
	server, err := Start(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Start is New for TestMain: one server for all tests of a package. Close it.
func Start(options ...Option) (*Server, error) {
	chosen := settings{embeddingProvider: "none"}
	for _, option := range options {
		option(&chosen)
	}
	command, err := serverCommand()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "durable-memory-test-")
	if err != nil {
		return nil, err
	}
	server := &Server{folder: folder, chosen: chosen}
	deadline := time.Now().Add(startTimeout)
	var unready error
	for range startAttempts {
		// Another process may have taken the port in between; then the server ends, and another one is tried.
		if unready, err = server.try(command, deadline); err != nil {
			return nil, errors.Join(err, server.Close())
		}
		if unready == nil {
			return server, nil
		}
	}
	err = fmt.Errorf("dmtest: the server did not become ready: %w\n%s", unready, server.log())
	return nil, errors.Join(err, server.Close())
}

// serverCommand is the program and its first arguments.
func serverCommand() ([]string, error) {
	words := strings.Fields(os.Getenv(commandVariable))
	if len(words) == 0 {
		words = []string{defaultCommand}
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		return nil, fmt.Errorf("dmtest: a test server needs the service: pip install durable-memory, or say in %s how to run "+
			"it: %w", commandVariable, err)
	}
	// It runs in a folder of its own, where a relative path leads nowhere.
	if words[0], err = filepath.Abs(program); err != nil {
		return nil, err
	}
	return words, nil
}

// NewClient makes another client, in a namespace of its own unless options name one, and closes it with the test.
func (s *Server) NewClient(t testing.TB, options ...durablememory.Option) *durablememory.Client {
	t.Helper()
	client, err := s.newClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *Server) newClient(options ...durablememory.Option) (*durablememory.Client, error) {
	own := []durablememory.Option{
		durablememory.WithAddress("http://" + s.Address),
		durablememory.WithNamespace(durablememory.Namespace{Tenant: "test", Principal: "principal-" + rand.Text(), Scope: "test"}),
	}
	return durablememory.NewClient(append(own, options...)...)
}

// Close ends the server and removes what it stored. Harmless if it has been closed.
func (s *Server) Close() error {
	if s.Client != nil {
		_ = s.Client.Close()
	}
	s.end()
	return os.RemoveAll(s.folder)
}

// try starts the server once. unready is why it did not get ready: it ended, or did not answer in time.
func (s *Server) try(command []string, deadline time.Time) (unready, err error) {
	log, err := os.OpenFile(filepath.Join(s.folder, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if s.Address, err = freeAddress(); err != nil {
		return nil, err
	}
	store := "sqlite:///" + filepath.Join(s.folder, "memory.db")
	s.command = exec.Command(command[0], append(command[1:len(command):len(command)], "serve", "--address", s.Address, "--store", store)...)
	s.command.Dir, s.command.Stdout, s.command.Stderr = s.folder, log, log
	s.command.Env = environment(s.chosen)
	if s.ended, err = start(s.command); err != nil {
		return nil, err
	}
	if s.Client, err = s.newClient(); err != nil {
		return nil, err
	}
	if unready = s.becomesReady(deadline); unready != nil {
		_ = s.Client.Close()
		s.end()
	}
	return unready, nil
}

// start starts the process, which ends with this one however that ends. ended is closed when it has.
func start(command *exec.Cmd) (ended chan struct{}, err error) {
	endWithParent(command)
	ended = make(chan struct{})
	started := make(chan error)
	go func() {
		// For Linux the parent is a thread: this one must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return ended, nil
}

var errEnded = errors.New("it ended")

func (s *Server) becomesReady(deadline time.Time) error {
	err := context.DeadlineExceeded
	timeout := probeTimeout
	for time.Now().Before(deadline) {
		select {
		case <-s.ended:
			return errEnded
		default:
		}
		if err = s.probe(timeout); err == nil {
			return nil
		}
		if errors.Is(err, durablememory.ErrUnavailable) {
			// On a machine that is busy, an answer may take longer than the first probes wait for it.
			timeout = min(longestProbe, timeout*5/4)
		}
	}
	return err
}

// probe asks once whether the server is ready. What fails at once takes its time all the same, unless the server ends.
func (s *Server) probe(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	info, err := s.Client.WaitUntilReady(ctx)
	if err == nil && s.chosen.recallsByMeaning() && len(info.SemanticGenerations) == 0 {
		// Until it is, recall is by words, and stays so for the sessions that are opened.
		err = errors.New("the model that makes the vectors is not loaded yet")
	}
	if err != nil {
		select {
		case <-s.ended:
		case <-ctx.Done():
		}
	}
	return err
}

func (s *Server) end() {
	if s.ended == nil {
		return
	}
	if s.command.Process.Signal(syscall.SIGTERM) != nil {
		_ = s.command.Process.Kill() // where there are no signals
	}
	select {
	case <-s.ended:
	case <-time.After(stopTimeout):
		_ = s.command.Process.Kill()
		<-s.ended
	}
	s.ended = nil
}

// log is the end of what the server has written.
func (s *Server) log() string {
	file, err := os.Open(filepath.Join(s.folder, "server.log"))
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > logTail {
		_, _ = file.Seek(-logTail, io.SeekEnd)
	}
	text, _ := io.ReadAll(file)
	return string(text)
}

// environment is that of the tests, without their settings: those are for clients, and for servers that they start
// themselves.
func environment(chosen settings) []string {
	own := []string{"DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER=" + chosen.embeddingProvider}
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "DURABLE_MEMORY_") {
			own = append(own, setting)
		}
	}
	return own
}

func freeAddress() (string, error) {
	for {
		offset, err := rand.Int(rand.Reader, big.NewInt(lastPort-firstPort))
		if err != nil {
			return "", err
		}
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+offset.Int64())
		if listener, err := net.Listen("tcp", address); err == nil {
			return address, listener.Close()
		}
	}
}
