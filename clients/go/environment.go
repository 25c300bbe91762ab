package durablememory

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

const (
	variablePrefix     = "DURABLE_MEMORY_"
	variablesOfServers = "DURABLE_MEMORY_SERVER_"
	variableOfCommands = "DURABLE_MEMORY_TOKEN_FILE"
)

var variablesOfClients = []string{
	"DURABLE_MEMORY_ADDRESS", "DURABLE_MEMORY_TOKEN", "DURABLE_MEMORY_TENANT", "DURABLE_MEMORY_PRINCIPAL", "DURABLE_MEMORY_SCOPE",
}

// requireKnownVariables refuses an environment with a variable that no client, command or server reads: it would have
// been meant for one of these, whose default is somebody else's memory.
func requireKnownVariables() error {
	var names []string
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, variablePrefix) {
			names = append(names, name)
		}
	}
	links := serviceLinks(names)
	unknown := slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(variablesOfClients, name) || name == variableOfCommands ||
			strings.HasPrefix(name, variablesOfServers) || slices.Contains(links, name)
	})
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	last := len(variablesOfClients) - 1
	return fmt.Errorf("durablememory: %s: no such setting of a client; there are %s and %s (and %s for commands)",
		strings.Join(unknown, ", "), strings.Join(variablesOfClients[:last], ", "), variablesOfClients[last], variableOfCommands)
}

// serviceLinks is those that Kubernetes sets in every container for a Service that is called like this one.
func serviceLinks(names []string) []string {
	var links []string
	for _, host := range names {
		service, isService := strings.CutSuffix(host, "_SERVICE_HOST")
		for _, name := range names {
			if isService && (name == service+"_PORT" || strings.HasPrefix(name, service+"_SERVICE_") ||
				strings.HasPrefix(name, service+"_PORT_")) {
				links = append(links, name)
			}
		}
	}
	return links
}
