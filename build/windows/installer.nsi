; Installs Porchlight for the user who runs it, without asking for an
; administrator: menu-bar app and command line, a start menu entry, and what
; takes it away again. What the owner keeps (%LocalAppData%\Porchlight) stays.
;
;   makensis -DVERSION=1.2.3 -DARCH=amd64 -DBIN=out\windows-amd64 -DOUT=file.exe installer.nsi
Unicode true
SetCompressor /SOLID lzma
RequestExecutionLevel user

!include LogicLib.nsh
!include MUI2.nsh

!ifndef VERSION
  !error "say -DVERSION=, -DARCH=, -DBIN= and -DOUT="
!endif

!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\Porchlight"

Name "Porchlight"
OutFile "${OUT}"
InstallDir "$LocalAppData\Programs\Porchlight"
InstallDirRegKey HKCU "Software\Porchlight" "InstallDir"
ManifestDPIAware true
ShowInstDetails nevershow

!define MUI_FINISHPAGE_RUN "$INSTDIR\porchlight-desktop.exe"
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

; A program that runs cannot be replaced: ask it to end, and wait until it has.
!macro EndRunning un
Function ${un}EndRunning
  IfFileExists "$INSTDIR\porchlight.exe" 0 done
  ReadEnvStr $0 USERNAME
  nsExec::Exec 'taskkill /IM porchlight-desktop.exe /FI "USERNAME eq $0"'
  Pop $0
  StrCpy $1 0
  try:
    ClearErrors
    FileOpen $0 "$INSTDIR\porchlight-desktop.exe" a
    IfErrors 0 free
    IntOp $1 $1 + 1
    IntCmp $1 40 stuck
    Sleep 250
    Goto try
  stuck:
    MessageBox MB_OKCANCEL|MB_ICONINFORMATION "Porchlight is still running. Quit it from its icon beside the clock, then go on." IDOK again
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
  File "${BIN}/porchlight-desktop.exe"
  File "${BIN}/porchlight.exe"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\Porchlight.lnk" "$INSTDIR\porchlight-desktop.exe"
  WriteRegStr HKCU "Software\Porchlight" "InstallDir" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "Porchlight"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "Publisher" "The Porchlight authors"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\porchlight-desktop.exe"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
SectionEnd

Section "Uninstall"
  Call un.EndRunning
  Delete "$INSTDIR\porchlight-desktop.exe"
  Delete "$INSTDIR\porchlight.exe"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\Porchlight.lnk"
  DeleteRegValue HKCU "Software\Microsoft\Windows\CurrentVersion\Run" "Porchlight"
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
