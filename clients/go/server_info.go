package durablememory

import (
	"time"

	pb "durablememory.dev/go/durablememoryv1"
)

// ServerInfo is what a server is and can do, and who it takes the caller for.
type ServerInfo struct {
	Version             string
	Caller              string
	LexicalProfiles     []string
	FusionProfiles      []string
	SemanticGenerations []SemanticGeneration
	RecallModes         []RecallMode
	DefaultPolicy       Policy
	Limits              ServerLimits
}

func serverInfoOf(message *pb.GetServerInfoResponse) ServerInfo {
	return ServerInfo{
		Version:             message.GetVersion(),
		Caller:              message.GetCaller(),
		LexicalProfiles:     message.GetLexicalProfiles(),
		FusionProfiles:      message.GetFusionProfiles(),
		SemanticGenerations: each(message.GetSemanticGenerations(), semanticGenerationOf),
		RecallModes:         fromEnums[RecallMode](message.GetRecallModes()),
		DefaultPolicy:       policyFrom(message.GetDefaultPolicy()),
		Limits:              serverLimitsOf(message.GetLimits()),
	}
}

// ServerLimits is what a server takes and gives at most. Sizes are in bytes, counts in items.
type ServerLimits struct {
	MaxRequestBytes         int64
	MaxResponseBytes        int64
	MaxIDBytes              int32
	MaxContentBytes         int32
	MaxSurroundings         int32
	MaxSurroundingBytes     int32
	MaxAuthorBytes          int32
	MaxEvidence             int32
	MaxEvidenceURIBytes     int32
	MaxEvidenceBodyBytes    int32
	MaxRelations            int32
	MaxLabels               int32
	MaxLabelKeyBytes        int32
	MaxLabelValueBytes      int32
	MaxNoteBytes            int32
	MaxOperations           int32
	MaxBatchItems           int32
	MaxQueryBytes           int32
	MaxResults              int32
	MaxRelatedLookups       int32
	MaxFilterValues         int32
	MaxPageSize             int32
	DefaultPageSize         int32
	MaxSnapshotNodes        int64
	MaxSnapshotBytes        int64
	MaxNamespaceActiveNodes int64
	MaxNamespaceActiveBytes int64
	MaxClockSkew            time.Duration
	RunIdleTimeout          time.Duration
	MaxImportBytes          int64
}

func serverLimitsOf(message *pb.ServerLimits) ServerLimits {
	return ServerLimits{
		MaxRequestBytes:         message.GetMaxRequestBytes(),
		MaxResponseBytes:        message.GetMaxResponseBytes(),
		MaxIDBytes:              message.GetMaxIdBytes(),
		MaxContentBytes:         message.GetMaxContentBytes(),
		MaxSurroundings:         message.GetMaxSurroundings(),
		MaxSurroundingBytes:     message.GetMaxSurroundingBytes(),
		MaxAuthorBytes:          message.GetMaxAuthorBytes(),
		MaxEvidence:             message.GetMaxEvidence(),
		MaxEvidenceURIBytes:     message.GetMaxEvidenceUriBytes(),
		MaxEvidenceBodyBytes:    message.GetMaxEvidenceBodyBytes(),
		MaxRelations:            message.GetMaxRelations(),
		MaxLabels:               message.GetMaxLabels(),
		MaxLabelKeyBytes:        message.GetMaxLabelKeyBytes(),
		MaxLabelValueBytes:      message.GetMaxLabelValueBytes(),
		MaxNoteBytes:            message.GetMaxNoteBytes(),
		MaxOperations:           message.GetMaxOperations(),
		MaxBatchItems:           message.GetMaxBatchItems(),
		MaxQueryBytes:           message.GetMaxQueryBytes(),
		MaxResults:              message.GetMaxResults(),
		MaxRelatedLookups:       message.GetMaxRelatedLookups(),
		MaxFilterValues:         message.GetMaxFilterValues(),
		MaxPageSize:             message.GetMaxPageSize(),
		DefaultPageSize:         message.GetDefaultPageSize(),
		MaxSnapshotNodes:        message.GetMaxSnapshotNodes(),
		MaxSnapshotBytes:        message.GetMaxSnapshotBytes(),
		MaxNamespaceActiveNodes: message.GetMaxNamespaceActiveNodes(),
		MaxNamespaceActiveBytes: message.GetMaxNamespaceActiveBytes(),
		MaxClockSkew:            fromDuration(message.GetMaxClockSkew()),
		RunIdleTimeout:          fromDuration(message.GetRunIdleTimeout()),
		MaxImportBytes:          message.GetMaxImportBytes(),
	}
}
