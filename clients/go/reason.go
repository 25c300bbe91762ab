package durablememory

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
)

// The reasons of the contract as data that the clients of all languages share: a copy of clients/reasons.json.
//
//go:embed reasons.json
var reasonsJSON []byte

const (
	reasonPrefix = "ERROR_REASON_"
	unknown      = "UNKNOWN"
)

// Reason says why the service refused or failed a call: a name of the contract's ErrorReason without its prefix.
// A reason that this version does not know is kept as it came. Every reason is an error that errors.Is finds in an
// [Error]:
//
//	if errors.Is(err, durablememory.ReasonRevisionConflict) { ... }
type Reason string

// Error is the reason itself; an [Error] says more.
func (r Reason) Error() string { return string(r) }

// reasonRow is what a client does about a reason. Definite is nil where there is nothing to change.
type reasonRow struct {
	Code     codes.Code
	Definite *bool
	Retry    string
	Outage   bool
}

type reasonTable struct {
	domain string
	rows   map[Reason]reasonRow
}

var reasons = sync.OnceValue(func() reasonTable {
	var file struct {
		Domain  string `json:"domain"`
		Reasons []struct {
			Reason   string `json:"reason"`
			Code     string `json:"code"`
			Definite *bool  `json:"definite"`
			Retry    string `json:"retry"`
			Outage   bool   `json:"outage"`
		} `json:"reasons"`
	}
	mustDecode(reasonsJSON, &file)
	table := reasonTable{domain: file.Domain, rows: make(map[Reason]reasonRow, len(file.Reasons))}
	for _, row := range file.Reasons {
		reason := Reason(strings.TrimPrefix(row.Reason, reasonPrefix))
		table.rows[reason] = reasonRow{Code: codeOf(row.Code), Definite: row.Definite, Retry: row.Retry, Outage: row.Outage}
	}
	return table
})

// codeOf is the status code with the name that the contract writes, such as FAILED_PRECONDITION.
func codeOf(name string) codes.Code {
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(`"` + name + `"`)); err != nil {
		panic("durablememory: no status code " + name)
	}
	return code
}

// mustDecode reads data that is part of this package, and so is right or a fault of the build.
func mustDecode(data []byte, into any) {
	if err := json.Unmarshal(data, into); err != nil {
		panic("durablememory: embedded data: " + err.Error())
	}
}
