; Installs Porchlight for the user who runs it, without asking for an
; administrator: menu-bar app and command line, a start menu entry, and what
; takes it away again. What the owner keeps (%LocalAppData%\Porchlight) stays,
; unless they say otherwise: uninstall.exe /S /PURGE removes it without a word.
;
;   makensis -DVERSION=1.2.3 -DARCH=amd64 -DBIN=out\windows-amd64 -DOUT=file.exe installer.nsi
;
; With -DAGENT: the agent in place of the menu-bar app, which starts when the user
; logs in, without a window.
Unicode true
!if "${ARCH}" == "amd64"
  Target amd64-unicode
!endif
SetCompressor /SOLID lzma
RequestExecutionLevel user

!include FileFunc.nsh
!include LogicLib.nsh
!include MUI2.nsh

!ifndef VERSION
  !error "say -DVERSION=, -DARCH=, -DBIN= and -DOUT="
!endif

!ifdef AGENT
  !define PROGRAM "porchlight-agent.exe"
!else
  !define PROGRAM "porchlight-desktop.exe"
!endif
!define RUN "Software\Microsoft\Windows\CurrentVersion\Run"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\Porchlight"

Name "Porchlight"
OutFile "${OUT}"
InstallDir "$LocalAppData\Programs\Porchlight"
InstallDirRegKey HKCU "Software\Porchlight" "InstallDir"
ManifestDPIAware true
ShowInstDetails nevershow

!ifndef AGENT
  !define MUI_FINISHPAGE_RUN "$INSTDIR\porchlight-desktop.exe"
!endif
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

; A program that runs cannot be replaced: ask it to end, and wait until it has. The agent
; has no window to be asked by, and what it keeps survives a kill.
!macro EndRunning un
Function ${un}EndRunning
  IfFileExists "$INSTDIR\porchlight.exe" 0 done
  ReadEnvStr $0 USERNAME
  nsExec::Exec 'taskkill /IM porchlight-desktop.exe /FI "USERNAME eq $0"'
  Pop $1
  nsExec::Exec 'taskkill /F /IM porchlight-agent.exe'
  Pop $1
  StrCpy $1 0
  try:
    ClearErrors
    StrCpy $2 "$INSTDIR\porchlight-desktop.exe"
    IfFileExists $2 +2
    StrCpy $2 "$INSTDIR\porchlight-agent.exe"
    FileOpen $0 $2 a
    IfErrors 0 free
    IntOp $1 $1 + 1
    IntCmp $1 40 stuck
    Sleep 250
    Goto try
  stuck:
    MessageBox MB_OKCANCEL|MB_ICONINFORMATION "Porchlight is still running. Quit it from its icon beside the clock, then go on." /SD IDCANCEL IDOK again
    Abort
  again:
    StrCpy $1 0
    Goto try
  free:
    FileClose $0
  done:
FunctionEnd
!macroend
!insertmacro EndRunning ""
!insertmacro EndRunning "un."

Section
  Call EndRunning
  SetOutPath "$INSTDIR"
  File "${BIN}/${PROGRAM}"
  File "${BIN}/porchlight.exe"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  !ifdef AGENT
    WriteRegStr HKCU "${RUN}" "Porchlight" '"$INSTDIR\${PROGRAM}" agent --local'
    Exec '"$INSTDIR\${PROGRAM}" agent --local'
  !else
    CreateShortcut "$SMPROGRAMS\Porchlight.lnk" "$INSTDIR\porchlight-desktop.exe"
  !endif
  WriteRegStr HKCU "Software\Porchlight" "InstallDir" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "Porchlight"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "Publisher" "The Porchlight authors"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\${PROGRAM}"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
SectionEnd

Section "Uninstall"
  Call un.EndRunning
  ${GetParameters} $0
  ClearErrors
  ${GetOptions} $0 "/PURGE" $1
  IfErrors 0 purge
  MessageBox MB_YESNO|MB_DEFBUTTON2|MB_ICONQUESTION "Remove what Porchlight keeps of yours, too: approvals, people, certificates? Nothing brings it back." /SD IDNO IDNO keep
  purge:
    nsExec::ExecToLog '"$INSTDIR\porchlight.exe" uninstall --purge --yes'
    Pop $0
    ${If} $0 != 0
      MessageBox MB_OK|MB_ICONEXCLAMATION "Not all of yours could be removed, so Porchlight stays. What is in the way says: porchlight uninstall --purge" /SD IDOK
      SetErrorLevel 1
      Abort
    ${EndIf}
  keep:
  Delete "$INSTDIR\porchlight-desktop.exe"
  Delete "$INSTDIR\porchlight-agent.exe"
  Delete "$INSTDIR\porchlight.exe"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\Porchlight.lnk"
  DeleteRegValue HKCU "${RUN}" "Porchlight"
  DeleteRegKey HKCU "${UNINSTALL}"
  DeleteRegKey HKCU "Software\Porchlight"
  ; What the toolkit's notifications left: their activator by its id, which is never empty then.
  ReadRegStr $0 HKCU "Software\Classes\AppUserModelId\porchlight-desktop.exe" "CustomActivator"
  ${If} $0 != ""
    DeleteRegKey HKCU "Software\Classes\CLSID\$0"
  ${EndIf}
  DeleteRegKey HKCU "Software\Classes\AppUserModelId\porchlight-desktop.exe"
  DeleteRegKey HKCU "Software\porchlight-desktop.exe"
SectionEnd
