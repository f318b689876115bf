;;; Runs in Emacs without a window: the functions that users call, with the settings of docs/editor.md.
;;; Results are written as JSON to the file in $RESULTS.  -*- lexical-binding: t -*-
(require 'package)
(package-initialize)
(require 'eglot)
(require 'json)
(require 'xref)

(unless (locate-library "hcl-mode")     ; Debian has no package for it
  (define-derived-mode hcl-mode prog-mode "HCL"))
(add-to-list 'auto-mode-alist '("\\.\\(tf\\|tofu\\|tfvars\\|hcl\\)\\'" . hcl-mode))
(load-file (getenv "SETTINGS"))

(defvar results nil)
(defun result (key value) (push (cons key value) results))

(defun at (name mark)
  "Visit a file with point behind MARK."
  (find-file (expand-file-name name default-root))
  (goto-char (point-min))
  (search-forward mark))

(defvar default-root default-directory)
(setq eglot-sync-connect 30 eglot-autoshutdown nil eglot-confirm-server-initiated-edits nil
      vc-handled-backends nil make-backup-files nil create-lockfiles nil)

(defun wait-for (what f)
  (let ((end (+ (float-time) 20)) got)
    (while (not (setq got (funcall f)))
      (when (> (float-time) end) (error "timeout: %s" what))
      (accept-process-output nil 0.05))
    got))

(defun places (all)
  (mapcar (lambda (x)
            (let ((l (xref-item-location x)))
              (format "%s:%d" (file-name-nondirectory (xref-location-group l)) (xref-location-line l))))
          all))

(condition-case err
    (progn
      (at "wrong.tf" "local.na")
      (hcl-mode)
      (let ((inhibit-message t))
        (apply #'eglot (eglot--guess-contact)))
      (let ((server (eglot-current-server)))
        (result "server" (plist-get (eglot--server-info server) :name))
        (wait-for "diagnostics" (lambda ()
                                  (let (got)
                                    (eglot-flymake-backend (lambda (ds &rest _) (setq got ds)))
                                    (and got (result "diagnostics" (flymake-diagnostic-text (car got)))))))
        ;; Code actions: the first one is chosen.
        (cl-letf (((symbol-function 'completing-read) (lambda (_ choices &rest _) (if (consp (car choices)) (caar choices) (car choices)))))
          (eglot-code-actions (point-min) (point-max) "quickfix" t))
        (wait-for "the code action" (lambda () (save-excursion (goto-char (point-min)) (search-forward "local.name" nil t))))
        (result "fixed" (buffer-string))
        (set-buffer-modified-p nil)

        (at "main.tf" "input = local.na")
        (eglot--maybe-activate-editing-mode)
        (eglot--signal-textDocument/didChange)
        (result "definition" (vconcat (places (xref-backend-definitions 'eglot (xref-backend-identifier-at-point 'eglot)))))
        (at "main.tf" "variable \"si")
        (result "references" (vconcat (places (xref-backend-references 'eglot (xref-backend-identifier-at-point 'eglot)))))

        (at "main.tf" "input = local.na")
        (let (text)
          (eglot-hover-eldoc-function (lambda (s &rest _) (setq text s)))
          (wait-for "hover" (lambda () text))
          (result "hover" (substring-no-properties text)))

        (at "main.tf" "input = local.")
        (let ((c (eglot-completion-at-point)))
          (result "completion" (vconcat (mapcar #'substring-no-properties (all-completions "" (nth 2 c))))))

        (at "ugly.tf" "ugly")
        (eglot--maybe-activate-editing-mode)
        (eglot-format-buffer)
        (result "formatted" (buffer-string))
        (set-buffer-modified-p nil)

        (at "main.tf" "variable \"si")
        (let* ((lenses (jsonrpc-request server :textDocument/codeLens (list :textDocument (eglot--TextDocumentIdentifier))))
               (lens (jsonrpc-request server :codeLens/resolve (aref lenses 0))))
          (result "lens" (plist-get (plist-get lens :command) :title)))

        (at "main.tf" "variable \"si")
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (&rest _) t))) ; edit a file that is not open
          (eglot-rename "count_of"))
        (result "renamed" (with-current-buffer (get-file-buffer (expand-file-name "main.tf" default-root)) (buffer-string)))
        (result "tfvars" (with-current-buffer (find-file-noselect (expand-file-name "terraform.tfvars" default-root)) (buffer-string)))
        (eglot-shutdown server nil 10)
        (result "status" "ok")))
  (error (result "status" (error-message-string err))))
(with-temp-file (getenv "RESULTS") (insert (json-encode results)))
(dolist (b (buffer-list)) (with-current-buffer b (set-buffer-modified-p nil)))
(kill-emacs 0)
