// Package protocol contains the types of the Language Server Protocol that the server uses.
//
// Main types: those of types.go, which internal/dev/lspgen generates from the meta model of the
// protocol. The one rule: types.go is never edited; the list of types is in the generator.
package protocol

import "encoding/json"

// InitializeParams are the parameters of the request initialize, as far as the server reads them.
type InitializeParams struct {
	RootURI               string             `json:"rootUri"`
	WorkspaceFolders      []WorkspaceFolder  `json:"workspaceFolders"`
	Capabilities          ClientCapabilities `json:"capabilities"`
	InitializationOptions json.RawMessage    `json:"initializationOptions"`
}

// ClientCapabilities are the capabilities of a client, as far as the server reads them.
type ClientCapabilities struct {
	General struct {
		PositionEncodings []string `json:"positionEncodings"`
	} `json:"general"`
	Workspace struct {
		Configuration       bool      `json:"configuration"`
		TextDocumentContent *struct{} `json:"textDocumentContent"` // nil means that the client does not open documents of the server
		WorkspaceEdit       struct {
			DocumentChanges bool `json:"documentChanges"` // the client accepts the version of each document with its edits
		} `json:"workspaceEdit"`
		DidChangeWatchedFiles struct {
			DynamicRegistration bool `json:"dynamicRegistration"`
		} `json:"didChangeWatchedFiles"`
		InlayHint struct {
			RefreshSupport bool `json:"refreshSupport"`
		} `json:"inlayHint"`
		CodeLens struct {
			RefreshSupport bool `json:"refreshSupport"`
		} `json:"codeLens"`
		Diagnostics struct {
			RefreshSupport bool `json:"refreshSupport"`
		} `json:"diagnostics"`
	} `json:"workspace"`
	TextDocument struct {
		Formatting struct {
			DynamicRegistration bool `json:"dynamicRegistration"`
		} `json:"formatting"`
		RangeFormatting struct {
			DynamicRegistration bool `json:"dynamicRegistration"`
		} `json:"rangeFormatting"`
		Diagnostic *struct{} `json:"diagnostic"` // nil means that the client does not request diagnostics
		Completion struct {
			CompletionItem struct {
				SnippetSupport bool `json:"snippetSupport"`
			} `json:"completionItem"`
		} `json:"completion"`
	} `json:"textDocument"`
}

// TextDocumentContentChange is one change of a document. Range is nil if Text is the whole new text.
type TextDocumentContentChange struct {
	Range *Range `json:"range"`
	Text  string `json:"text"`
}

// DocumentEdit is the edits of one version of a document, as WorkspaceEdit.DocumentChanges contains them.
type DocumentEdit struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version *int   `json:"version"` // nil if the document is not open
	} `json:"textDocument"`
	Edits []TextEdit `json:"edits"`
}

// RenameFilesParams are the parameters of workspace/willRenameFiles and workspace/didRenameFiles.
type RenameFilesParams struct {
	Files []FileRename `json:"files"`
}

// FileRename is one renamed file or directory.
type FileRename struct {
	OldURI string `json:"oldUri"`
	NewURI string `json:"newUri"`
}

// ShowMessageRequestParams are the parameters of the request window/showMessageRequest.
type ShowMessageRequestParams struct {
	Type    MessageType         `json:"type"`
	Message string              `json:"message"`
	Actions []MessageActionItem `json:"actions"`
}

// MessageActionItem is an answer that the user can choose.
type MessageActionItem struct {
	Title string `json:"title"`
}
